"""The HTTP door: ``POST /v1/<tool-name>``, ``/mcp``, ``/openapi.json`` and ``/healthz`` on one port."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from advisor import __version__
from advisor.errors import AdvisorError, nearest
from tools import TOOLS
from tools.json_text import parse_json
from tools.mcp_door import build_server
from tools.tool import Tool, internal_error
from tools.worker import TIME_LIMIT_S, reply_within

if TYPE_CHECKING:
    from collections.abc import Mapping

BODY_LIMIT: Final = 1024 * 1024
PROBLEM: Final = "application/problem+json"
STATUS: Final = {
    "malformed_json": HTTPStatus.BAD_REQUEST,
    "not_found": HTTPStatus.NOT_FOUND,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "body_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unsupported_media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "internal_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "time_limit": HTTPStatus.SERVICE_UNAVAILABLE,
}
PROBLEM_SCHEMA: Final = {
    "type": "object",
    "description": "RFC 9457 problem details",
    "required": ["type", "title", "status", "detail", "code", "pointer", "suggestions"],
    "properties": {
        "type": {"type": "string", "description": "a URN that ends in the code"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what was given, what is accepted"},
        "code": {"type": "string"},
        "pointer": {"type": "string", "description": "JSON pointer of the argument"},
        "suggestions": {"type": "array", "items": {"type": "string"}},
    },
}


def build_app(*, host: str = "127.0.0.1", time_limit_s: float = TIME_LIMIT_S) -> FastAPI:
    """The web application. It never reads a path that a request names.

    Args:
        host: the address it is bound to; on loopback, MCP requests with a foreign Host or Origin are refused.
        time_limit_s: seconds a request may take.
    """
    server = build_server(allow_paths=False, time_limit_s=time_limit_s)
    mcp_app = server.streamable_http_app(
        stateless_http=True, json_response=True, max_request_body_size=BODY_LIMIT, host=host
    )
    app = FastAPI(
        title="TrainFit",
        version=__version__,
        summary="Will a training job fit, what fills the memory, which configuration to run, and why.",
        docs_url=None,  # its page loads scripts from elsewhere; this server works offline
        redoc_url=None,
        lifespan=lambda app: server.session_manager.run(),  # noqa: ARG005 - the signature of a lifespan
    )
    for tool in TOOLS:
        _add_tool(app, tool, time_limit_s)
    app.add_api_route("/healthz", healthz, operation_id="healthz", summary="Whether the server answers")
    app.add_api_route("/mcp", _no_stream, methods=["GET", "DELETE"], include_in_schema=False)
    app.router.routes.extend(mcp_app.routes)
    app.add_exception_handler(AdvisorError, _on_advisor_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_fault)
    return app


async def healthz() -> dict[str, str]:
    """Alive, and which release."""
    return {"status": "ok", "trainfit": __version__}


def problem(error: AdvisorError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as RFC 9457 problem details."""
    status = STATUS.get(error.code, HTTPStatus.UNPROCESSABLE_ENTITY)
    title = error.code.replace("_", " ").capitalize()
    body = {"type": f"urn:trainfit:error:{error.code}", "title": title, "status": int(status), **error.as_dict()}
    return JSONResponse(body, status_code=status, headers=headers, media_type=PROBLEM)


def _add_tool(app: FastAPI, tool: Tool, time_limit_s: float) -> None:
    async def answer(request: Request) -> Response:
        arguments = await _read_arguments(request)
        reply = await reply_within(tool, arguments, allow_paths=False, time_limit_s=time_limit_s)
        return Response(reply.as_json(), media_type="application/json")

    path = f"/v1/{tool.name.replace('_', '-')}"
    examples = {f"example {number}": {"value": dict(each)} for number, each in enumerate(tool.examples, start=1)}
    app.add_api_route(
        path,
        answer,
        methods=["POST"],
        operation_id=tool.name,
        summary=tool.title,
        description=tool.description,
        response_class=Response,
        responses={
            200: {"description": "The answer", "content": {"application/json": {"schema": tool.output_schema}}},
            **{code: _problem_response(meaning) for code, meaning in _MEANINGS.items()},
        },
        openapi_extra={
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": tool.input_schema, "examples": examples}},
            }
        },
    )
    app.add_api_route(f"/v1/{tool.name}", answer, methods=["POST"], include_in_schema=False)


_MEANINGS: Final = {
    400: "The body is not JSON",
    413: "The body is larger than 1 MiB",
    415: "The body is not sent as application/json",
    422: "What is wrong with the arguments",
    500: "A fault of the server",
    503: "The time limit was reached",
}


def _problem_response(meaning: str) -> dict[str, Any]:
    return {"description": meaning, "content": {PROBLEM: {"schema": PROBLEM_SCHEMA}}}


async def _read_arguments(request: Request) -> Any:
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() != "application/json":
        detail = f"expected a body of type application/json, got {given[:80] or 'none'}"
        raise AdvisorError("unsupported_media_type", detail)
    return parse_json(await _read_body(request), what="the request body")


async def _read_body(request: Request) -> bytes:
    body = bytearray()
    async for chunk in request.stream():
        body.extend(chunk)
        if len(body) > BODY_LIMIT:
            raise AdvisorError("body_too_large", f"the request body is larger than {BODY_LIMIT:,} bytes")
    return bytes(body)


async def _no_stream() -> Response:
    """There is nothing to stream and no session to end: the server is stateless."""
    raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})


async def _on_advisor_error(request: Request, error: Exception) -> Response:  # noqa: ARG001 - Starlette's signature
    assert isinstance(error, AdvisorError)
    return problem(error)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:120]
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        accepted = (error.headers or {}).get("Allow", "POST")
        refusal = AdvisorError(
            "method_not_allowed", f"{request.method} is not accepted at {path}; accepted: {accepted}"
        )
        return problem(refusal, error.headers)
    paths = [f"/v1/{tool.name.replace('_', '-')}" for tool in TOOLS] + ["/mcp", "/openapi.json", "/healthz"]
    detail = f"there is nothing at {path}; accepted: {', '.join(paths)}"
    return problem(AdvisorError("not_found", detail, suggestions=nearest(path, paths)), error.headers)


async def _on_fault(request: Request, error: Exception) -> Response:
    return problem(internal_error(request.url.path[:120], error))
