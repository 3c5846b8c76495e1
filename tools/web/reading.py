"""What can be read with GET: the catalog, the schemas, the state of the server. Each answer has an ETag."""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi import Path, Query, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

from advisor import __version__
from advisor.catalog.entries import KINDS
from advisor.errors import AdvisorError
from advisor.request import unknown_argument
from advisor.types import EXPLAINED
from tools import find_tool
from tools.list_catalog import LIST_CATALOG
from tools.web import metrics as prometheus
from tools.web.problem import problem, responses
from tools.workers.kept import digest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from fastapi import FastAPI

    from tools.tool import Tool
    from tools.web.metrics import Metrics
    from tools.web.tokens import Tokens
    from tools.workers.runner import Runner

FRESH: Final = "max-age=300"
NOT_MODIFIED: Final = 304


def add_catalog(app: FastAPI, runner: Runner) -> None:
    """``/v1/catalog`` and ``/v1/catalog/{kind}``: what can be named in a request."""

    async def catalog(request: Request, query: str | None = Query(None, max_length=200)) -> Response:
        return await listed(request, None, query)

    async def catalog_kind(
        request: Request, kind: str = _one_of(*KINDS, *EXPLAINED), query: str | None = Query(None, max_length=200)
    ) -> Response:
        try:
            return await listed(request, kind, query)
        except AdvisorError as error:
            if error.pointer != "/kind":
                raise
            return problem(error, status=HTTPStatus.NOT_FOUND)

    async def listed(request: Request, kind: str | None, query: str | None) -> Response:
        refuse_other_parameters(request, "query")
        sent = await runner.reply(LIST_CATALOG, {"kind": kind, "query": query}, allow_paths=False)
        return tagged(request, sent.body)

    about: dict[str, Any] = {"summary": "List the catalog", "tags": ["catalog"], "response_class": Response}
    entries = {200: json_response("The entries", LIST_CATALOG.output_schema)}
    of_all, of_kind = entries | responses(422, 503), entries | responses(404, 422, 503)
    app.add_api_route("/v1/catalog", catalog, operation_id="get_catalog", responses=of_all, **about)
    app.add_api_route("/v1/catalog/{kind}", catalog_kind, operation_id="get_catalog_kind", responses=of_kind, **about)


def add_schemas(app: FastAPI, tools: Sequence[Tool]) -> None:
    """``/v1/schemas`` and ``/v1/schemas/{tool}``: JSON Schemas of arguments and answers."""

    async def schemas(request: Request) -> Response:
        refuse_other_parameters(request)
        return tagged(request, json.dumps({tool.name: _schemas(tool) for tool in tools}))

    async def tool_schemas(request: Request, tool: str = _one_of(*(tool.name for tool in tools))) -> Response:
        refuse_other_parameters(request)
        try:
            found = find_tool(tool, tools)
        except AdvisorError as error:
            return problem(error, status=HTTPStatus.NOT_FOUND)
        return tagged(request, json.dumps(_schemas(found)))

    about: dict[str, Any] = {"tags": ["catalog"], "response_class": Response}
    of_all = {200: json_response("Schemas by tool", {"type": "object"}), **responses(422)}
    of_one = {200: json_response("Its schemas", {"type": "object"}), **responses(404, 422)}
    app.add_api_route(
        "/v1/schemas", schemas, operation_id="get_schemas", summary="Schemas of all tools", responses=of_all, **about
    )
    app.add_api_route(
        "/v1/schemas/{tool}",
        tool_schemas,
        operation_id="get_tool_schemas",
        summary="Schemas of one tool",
        responses=of_one,
        **about,
    )


def add_resource_metadata(app: FastAPI, tokens: Tokens) -> None:
    """Where access tokens for this server are issued: RFC 9728, open to everybody."""

    async def resource_metadata(request: Request) -> Response:
        return tagged(request, json.dumps(tokens.metadata))

    app.add_api_route(tokens.metadata_path, resource_metadata, include_in_schema=False)


def add_state(app: FastAPI, metrics: Metrics, gauges: Callable[[], Mapping[str, int]]) -> None:
    """``/healthz``, ``/readyz``, ``/version`` and ``/metrics``, for those who run the server.

    Args:
        app: where they are added.
        metrics: what is counted.
        gauges: how many workers there are now.
    """

    async def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    async def readyz() -> JSONResponse:
        if gauges().get("trainfit_workers_ready", 1) == 0:
            raise AdvisorError("not_ready", "no worker is ready yet; ask again in a moment")
        return JSONResponse({"status": "ready"})

    async def version() -> JSONResponse:
        return JSONResponse({"trainfit": __version__, "api": "v1"})

    async def counted() -> Response:
        metrics.gauges = dict(gauges())
        return PlainTextResponse(metrics.exposition(), media_type=prometheus.CONTENT_TYPE)

    about: dict[str, Any] = {"tags": ["state"]}
    app.add_api_route("/healthz", healthz, operation_id="healthz", summary="Whether the server answers", **about)
    app.add_api_route(
        "/readyz",
        readyz,
        operation_id="readyz",
        summary="Whether a worker is ready to compute",
        responses={503: responses(503)[503]},
        **about,
    )
    app.add_api_route("/version", version, operation_id="version", summary="Which release", **about)
    app.add_api_route(
        "/metrics",
        counted,
        operation_id="metrics",
        summary="Counts in Prometheus' text format",
        response_class=PlainTextResponse,
        **about,
    )


def refuse_other_parameters(request: Request, *accepted: str) -> None:
    """Parameters of the address are arguments: one that does not exist, or stands there twice, is refused like any.

    Raises:
        AdvisorError: ``unknown_argument`` or ``invalid_value``.
    """
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in accepted:
            raise unknown_argument(name, accepted) if accepted else _no_argument(name)
        if names.count(name) > 1:
            raise AdvisorError("invalid_value", f"{name}: given twice", pointer=f"/{name}")


def json_response(meaning: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """What OpenAPI says of a JSON answer."""
    return {"description": meaning, "content": {"application/json": {"schema": schema}}}


def tagged(request: Request, body: str) -> Response:
    """A JSON body with its ETag; 304 without a body when the caller holds it already."""
    headers = {"ETag": f'"{digest(body)}"', "Cache-Control": FRESH}
    if headers["ETag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=NOT_MODIFIED, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def _one_of(*names: str) -> Any:
    """A part of a path, and what OpenAPI says it may be; what it is not is refused by the tool, with what is near."""
    return Path(json_schema_extra={"enum": list(names)})


def _no_argument(name: str) -> AdvisorError:
    return AdvisorError("unknown_argument", f"unknown argument {name[:80]!r}; none is accepted here")


def _schemas(tool: Tool) -> dict[str, Any]:
    return {"title": tool.title, "input": tool.input_schema, "output": tool.output_schema}
