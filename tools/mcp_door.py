"""The MCP door: one server object for stdio and Streamable HTTP, built from the tools.

It stands on the SDK's low-level server, because the high-level one drops arguments it does not know and hides the
text of errors. Arguments are read by our own request reader, so that every door refuses them in the same words.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server

from advisor import __version__
from advisor.errors import AdvisorError
from tools import TOOLS, find_tool
from tools.tool import Tool, error_text
from tools.worker import TIME_LIMIT_S, reply_within

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


def build_server(
    tools: Sequence[Tool] = TOOLS, *, allow_paths: bool, time_limit_s: float = TIME_LIMIT_S
) -> Server[Any]:
    """A server that lists the tools and answers their calls.

    Args:
        tools: what it offers.
        allow_paths: whether files named in arguments may be read: True on stdio, False over HTTP.
        time_limit_s: seconds a call may take.
    """
    definitions = types.ListToolsResult(tools=[definition(tool) for tool in tools])

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:  # noqa: ARG001 - the SDK's signature
        return definitions

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:  # noqa: ARG001
        try:
            tool = find_tool(params.name)
            arguments = params.arguments or {}
            reply = await reply_within(tool, arguments, allow_paths=allow_paths, time_limit_s=time_limit_s)
            return types.CallToolResult(content=[_text(reply.text)], structured_content=reply.as_data())
        except AdvisorError as error:
            return _refusal(error)

    return Server(
        "trainfit",
        version=__version__,
        title="TrainFit",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def definition(tool: Tool) -> types.Tool:
    """A tool as MCP hosts see it."""
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=READ_ONLY,
    )


async def serve_stdio(time_limit_s: float = TIME_LIMIT_S) -> None:
    """Answer one host over standard input and output until it closes them."""
    server = build_server(allow_paths=True, time_limit_s=time_limit_s)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _text(text: str) -> types.TextContent:
    return types.TextContent(type="text", text=text)


def _refusal(error: AdvisorError) -> types.CallToolResult:
    return types.CallToolResult(content=[_text(error_text(error))], structured_content=error.as_dict(), is_error=True)
