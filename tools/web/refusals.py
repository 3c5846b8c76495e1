"""Whatever refuses a request, the framework or a tool, is told in the one shape of all errors."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from advisor.errors import AdvisorError, nearest
from tools.tool import Tool, internal_error
from tools.web.problem import problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI, Request
    from fastapi.responses import Response


def add_refusals(app: FastAPI, tools: Sequence[Tool]) -> None:
    """Every refusal is a problem of one shape."""
    accepted = [tool.path for tool in tools] + ["/v1/batch", "/v1/catalog", "/v1/schemas", "/mcp", "/openapi.json"]

    async def on_advisor_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, AdvisorError)
        return problem(error)

    async def on_validation_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        first = error.errors()[0]
        name = str(first["loc"][-1])
        return problem(AdvisorError("invalid_value", f"{name}: {first['msg']}", pointer=f"/{name}"))

    async def on_http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem(_http_refusal(request, error, accepted), error.headers)

    async def on_fault(request: Request, error: Exception) -> Response:
        return problem(internal_error(request.url.path[:120], error))

    app.add_exception_handler(AdvisorError, on_advisor_error)
    app.add_exception_handler(RequestValidationError, on_validation_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_fault)


def _http_refusal(request: Request, error: HTTPException, paths: Sequence[str]) -> AdvisorError:
    path = request.url.path[:120]
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        accepted = (error.headers or {}).get("Allow", "POST")
        return AdvisorError("method_not_allowed", f"{request.method} is not accepted at {path}; accepted: {accepted}")
    detail = f"there is nothing at {path}; accepted: {', '.join(paths)}"
    return AdvisorError("not_found", detail, suggestions=nearest(path, paths))
