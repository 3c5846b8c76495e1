"""The MCP door: one server object for stdio and Streamable HTTP, built from the tools and what can be read beside them.

It stands on the SDK's low-level server, because the high-level one drops arguments it does not know and hides the
text of errors. Arguments are read by our own request reader, so that every door refuses them in the same words.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.stdio import stdio_server

from advisor import __version__
from advisor.errors import AdvisorError
from tools import TOOLS, allowed_tools, find_tool
from tools.mcp_headers import listed_schema, refuse_other_headers
from tools.mcp_messages import Messages, former_names
from tools.mcp_reading import in_protocol_words, reading_handlers
from tools.mcp_sessions import Calls
from tools.tool import Tool, error_text
from tools.views import EXTENSION, meta_of
from tools.workers.pool import Pool
from tools.workers.runner import TIME_LIMIT_S, Runner, Sent, ThreadRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

INSTRUCTIONS: Final = (
    "TrainFit sizes training jobs of large models: will it fit in GPU memory, what fills the memory, which "
    "configuration to run, and why. Start with recommend_setup (model and hardware are enough); use estimate_memory "
    "for one given layout. Name a model by preset ('llama-3-70b'), size ('70B') or hf_config, hardware as "
    "'4x8 H100-80GB' (nodes x GPUs per node). What you leave out is chosen and said under assumptions: tell the user "
    "the ones that matter. Figures are estimates for planning; list_catalog shows accepted names."
)
READ_ONLY: Final = types.ToolAnnotations(
    read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)
ERROR_KEY: Final = "trainfit/error"
TOOLS_HEADER: Final = "x-trainfit-tools"
FRESH_MS: Final = 3_600_000
CACHED: Final = ("tools/list", "resources/list", "resources/templates/list", "resources/read", "prompts/list")
BETWEEN_REPORTS_S: Final = 1.0
CUT_SHORT: Final = "stopped when its budget was spent; the answer says what it left out, and more work might say more"


def build_server(tools: Sequence[Tool] = TOOLS, *, allow_paths: bool, runner: Runner | None = None) -> Server[Any]:
    """A server that lists the tools, answers their calls, and offers the same knowledge as resources and prompts.

    Args:
        tools: what it offers; over HTTP a caller narrows them with the header ``X-TrainFit-Tools``.
        allow_paths: whether files named in arguments may be read: True on stdio, False over HTTP.
        runner: computes the calls; a thread of this process when absent.
    """
    run, calls, messages = runner or ThreadRunner(), Calls(), Messages()

    async def list_tools(context: Any, _: Any) -> types.ListToolsResult:
        shown = [definition(tool, context.protocol_version) for tool in _offered(tools, context)]
        return types.ListToolsResult(tools=shown)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            tool, arguments = find_tool(params.name, _offered(tools, context)), params.arguments or {}
            refuse_other_headers(tool, arguments, context)
            for former, present in former_names(params.name, arguments):
                await messages.tell(context, "notice", f"{former} is called {present} now")
            with calls.in_hand(context):
                reply = await _reported(run, tool, arguments, context, allow_paths=allow_paths)
                if not reply.whole:
                    await messages.tell(context, "warning", f"{tool.name} {CUT_SHORT}")
                return types.CallToolResult(content=[_text(reply.text)], structured_content=reply.as_data())
        except AdvisorError as error:
            return _refusal(error)
        return _refusal(AdvisorError("time_limit", "the caller has cancelled the call"))

    server: Server[Any] = Server(
        "trainfit",
        version=__version__,
        title="TrainFit",
        instructions=INSTRUCTIONS,
        cache_hints=dict.fromkeys(CACHED, CacheHint(ttl_ms=FRESH_MS, scope="private")),
        get_tool_input_schema=lambda _: None,  # the SDK would list all tools for each call; a call is judged by its own
        on_list_tools=in_protocol_words(list_tools),
        on_call_tool=call_tool,
        **reading_handlers(partial(_offered, tools), run),
    )
    server.extensions[EXTENSION] = {}
    server.add_request_handler("logging/setLevel", types.SetLevelRequestParams, messages.set_level)
    server.add_notification_handler("notifications/cancelled", types.CancelledNotificationParams, calls.cancel)
    return server


def definition(tool: Tool, protocol_version: str) -> types.Tool:
    """A tool as MCP hosts of that version see it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=listed_schema(tool, protocol_version),
        output_schema=tool.output_schema,
        annotations=READ_ONLY,
        _meta=meta_of(tool),
    )


async def serve_stdio(tools: Sequence[Tool] = TOOLS, time_limit_s: float = TIME_LIMIT_S, workers: int = 1) -> None:
    """Answer one host over standard input and output until it closes them."""
    async with Pool(workers, time_limit_s) as pool, stdio_server() as (reading, writing):
        server = build_server(tools, allow_paths=True, runner=pool)
        await server.run(reading, writing, server.create_initialization_options())


def _offered(tools: Sequence[Tool], context: Any) -> Sequence[Tool]:
    """The tools this caller sees: all of ours, or those its header names."""
    request = getattr(context, "request", None)
    return allowed_tools(request.headers.get(TOOLS_HEADER), tools) if request is not None else tools


async def _reported(run: Runner, tool: Tool, arguments: Any, context: Any, *, allow_paths: bool) -> Sent:
    """The reply; while a long tool computes, the host hears each second that it does.

    A host's cancellation reaches the runner through this await, and stops the work.
    """
    outcome: list[Sent | AdvisorError] = []
    async with anyio.create_task_group() as tasks:
        if tool.long:
            tasks.start_soon(_report, tool, context)
        try:
            outcome.append(await run.reply(tool, arguments, allow_paths=allow_paths))
        except AdvisorError as error:  # kept until the group ends, which would wrap it
            outcome.append(error)
        tasks.cancel_scope.cancel()
    if isinstance(outcome[0], AdvisorError):
        raise outcome[0]
    return outcome[0]


async def _report(tool: Tool, context: Any) -> None:
    """Say each second how long the call has run. What remains is not known, so no total is claimed."""
    seconds = 0.0
    while True:
        await context.session.report_progress(seconds, None, f"{tool.title}: {seconds:g} s")
        await anyio.sleep(BETWEEN_REPORTS_S)
        seconds += BETWEEN_REPORTS_S


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _refusal(error: AdvisorError) -> types.CallToolResult:
    """The error as text, its fields beside it: strict clients hold structured content to the schema of answers."""
    return types.CallToolResult(content=[_text(error_text(error))], is_error=True, _meta={ERROR_KEY: error.as_dict()})
