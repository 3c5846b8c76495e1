"""The HTTP door: ``POST /v1/<tool-name>``, ``/v1/batch``, what GET reads, and ``/mcp``, on one port."""

from __future__ import annotations

from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
from fastapi import FastAPI, Request
from fastapi.responses import Response, StreamingResponse
from mcp.server.transport_security import TransportSecuritySettings
from starlette.exceptions import HTTPException

from advisor import __version__
from advisor.errors import AdvisorError
from advisor.request import FORMER_TOOLS, refuse_unbounded
from tools import TOOLS
from tools.json_text import parse_json
from tools.mcp_door import build_server
from tools.mcp_sessions import NamedClients
from tools.schema import with_null
from tools.tool import Tool
from tools.web import batch, reading
from tools.web.gate import BODY_LIMIT, Gate, Policy
from tools.web.metrics import MeasuredRunner, Metrics
from tools.web.problem import responses
from tools.web.refusals import add_refusals
from tools.web.watch import Watch
from tools.workers.kept import MOST_BYTES, KeepingRunner, inputs_hash
from tools.workers.pool import Pool
from tools.workers.runner import BUDGET_S, TIME_LIMIT_S, Runner, Sent, ThreadRunner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

TAGS: Final = (
    {"name": "tools", "description": "One question each; the same names as in MCP, Python and on the command line."},
    {"name": "catalog", "description": "What can be named, and the shapes of arguments and answers."},
    {"name": "state", "description": "For those who run the server."},
)
BEARER: Final = {"type": "http", "scheme": "bearer", "description": "a key or an access token, where asked for"}


class App(FastAPI):
    """FastAPI, whose OpenAPI document also says that a bearer key may be asked for."""

    def openapi(self) -> dict[str, Any]:
        """The document, made once."""
        if self.openapi_schema is None:
            document = super().openapi()
            document.setdefault("components", {})["securitySchemes"] = {"bearer": BEARER}
            document["security"] = [{}, {"bearer": []}]
        return super().openapi()


def build_app(
    *,
    tools: Sequence[Tool] = TOOLS,
    policy: Policy | None = None,
    time_limit_s: float = TIME_LIMIT_S,
    budget_s: float = BUDGET_S,
    kept_bytes: int = MOST_BYTES,
    workers: int | None = None,
) -> FastAPI:
    """The web application. It never reads a path that a request names.

    Args:
        tools: what it offers.
        policy: who may ask, and how much; anybody when absent.
        time_limit_s: seconds a call may take.
        budget_s: seconds of processor time after which a search answers with what it has.
        kept_bytes: of answers kept in memory; none are kept when 0.
        workers: processes that compute; when absent, calls are computed in threads of this process.
    """
    policy, metrics = policy or Policy(), Metrics()
    computing = Pool(workers, time_limit_s, budget_s) if workers else ThreadRunner(time_limit_s, budget_s)
    runner = KeepingRunner(MeasuredRunner(computing, metrics), metrics, kept_bytes)
    server = build_server(tools, allow_paths=False, runner=runner)
    open_gate = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # ours stands before both surfaces
    mcp_app = server.streamable_http_app(
        stateless_http=True, max_request_body_size=BODY_LIMIT, transport_security=open_gate
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with server.session_manager.run():
            if isinstance(computing, Pool):
                async with computing:
                    yield
            else:
                yield

    app = App(
        title="TrainFit",
        version=__version__,
        summary="Will a training job fit, what fills the memory, which configuration to run, and why.",
        openapi_tags=[dict(tag) for tag in TAGS],
        docs_url=None,  # its page loads scripts from elsewhere; this server works offline
        redoc_url=None,
        lifespan=lifespan,
    )
    for tool in tools:
        _add_tool(app, tool, runner)
    _add_batch(app, tools, runner, policy)
    if policy.tokens:
        reading.add_resource_metadata(app, policy.tokens)
    reading.add_catalog(app, runner)
    reading.add_schemas(app, tools)
    reading.add_state(app, metrics, lambda: _gauges(computing, runner))
    app.add_api_route("/mcp", _no_stream, methods=["GET", "DELETE"], include_in_schema=False)
    app.router.routes.extend(mcp_app.routes)
    add_refusals(app, tools)
    app.add_middleware(NamedClients)
    app.add_middleware(Gate, policy=policy)
    app.add_middleware(Watch, metrics=metrics, paths=frozenset(getattr(route, "path", "") for route in app.routes))
    return app


def _gauges(computing: Runner, runner: KeepingRunner) -> Mapping[str, int]:
    kept = {"trainfit_kept_answers": runner.count, "trainfit_kept_bytes": runner.bytes}
    if not isinstance(computing, Pool):
        return kept
    return {**kept, "trainfit_workers_ready": len(computing.pids), "trainfit_workers_replaced": computing.replaced}


def _add_tool(app: FastAPI, tool: Tool, runner: KeepingRunner) -> None:
    async def answer(request: Request) -> Response:
        reading.refuse_other_parameters(request)
        arguments = await _read_arguments(request)
        reply = runner.kept(tool, arguments) or await _while_connected(request, runner, tool, arguments)
        headers = {"Inputs-Hash": inputs_hash(tool, arguments)}
        return Response(reply.body, media_type="application/json", headers=headers)

    examples = {f"example {number}": {"value": dict(each)} for number, each in enumerate(tool.examples, start=1)}
    app.add_api_route(
        tool.path,
        answer,
        methods=["POST"],
        operation_id=tool.name,
        summary=tool.title,
        description=tool.description,
        tags=["tools"],
        response_class=Response,
        responses={
            200: reading.json_response("The answer", tool.output_schema),
            **responses(400, 408, 413, 415, 422, 503),
        },
        openapi_extra={
            "requestBody": _body({"application/json": {"schema": with_null(tool.input_schema), "examples": examples}})
        },
    )
    former = [name for name, present in FORMER_TOOLS.items() if present == tool.name]
    for name in (tool.name, *former, *(each.replace("_", "-") for each in former)):
        app.add_api_route(f"/v1/{name}", answer, methods=["POST"], include_in_schema=False)


def _add_batch(app: FastAPI, tools: Sequence[Tool], runner: Runner, policy: Policy) -> None:
    async def answer(request: Request) -> Response:
        reading.refuse_other_parameters(request)
        _check_type(request, batch.ACCEPTED_TYPES)
        lines = batch.read_lines(await request.body())
        caller = request.state.caller
        calls = batch.Batch(lines, tools, runner, take=lambda: policy.rate.take(caller))
        return StreamingResponse(calls.replies(), media_type=batch.MEDIA_TYPE)

    text = {"schema": {"type": "string", "description": "JSON Lines"}, "example": batch.EXAMPLE}
    app.add_api_route(
        "/v1/batch",
        answer,
        methods=["POST"],
        operation_id="batch",
        summary="Many calls at once",
        description=f"JSON Lines in and out, in the same order, at most {batch.MOST_LINES:,} lines. A line that cannot "
        "be answered has its problem under `error`; the others are answered.",
        tags=["tools"],
        response_class=StreamingResponse,
        responses={
            200: {"description": "One line a call", "content": {batch.MEDIA_TYPE: text}},
            **responses(400, 408, 413, 415, 422),
        },
        openapi_extra={"requestBody": _body({batch.MEDIA_TYPE: text})},
    )


def _body(content: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": content}


async def _read_arguments(request: Request) -> Any:
    _check_type(request, ("application/json",))
    arguments = parse_json(await request.body(), what="the request body")
    if isinstance(arguments, dict):
        refuse_unbounded(arguments)  # before it is copied, hashed and sent to a worker
    return arguments


def _check_type(request: Request, accepted: Sequence[str]) -> None:
    given = request.headers.get("content-type", "")
    if given.partition(";")[0].strip().lower() not in accepted:
        detail = f"expected a body of type {accepted[0]}, got {given[:80] or 'none'}"
        raise AdvisorError("unsupported_media_type", detail)


async def _while_connected(request: Request, runner: Runner, tool: Tool, arguments: Any) -> Sent:
    """The reply; when the caller hangs up meanwhile, the work is stopped."""
    outcome: list[Sent | AdvisorError] = []

    async with anyio.create_task_group() as tasks:

        async def stop_when_gone() -> None:
            while (await request.receive())["type"] != "http.disconnect":
                pass
            tasks.cancel_scope.cancel()

        tasks.start_soon(stop_when_gone)
        try:
            outcome.append(await runner.reply(tool, arguments, allow_paths=False))
        except AdvisorError as error:  # kept until the group ends, which would wrap it
            outcome.append(error)
        tasks.cancel_scope.cancel()
    reply = outcome[0] if outcome else AdvisorError("time_limit", "the caller has gone")
    if isinstance(reply, AdvisorError):
        raise reply
    return reply


async def _no_stream() -> Response:
    """There is nothing to stream and no session to end: the server is stateless."""
    raise HTTPException(HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})
