"""The least that an MCP server of the same SDK can be: what ``benchmarks.start`` compares with."""

from __future__ import annotations

from typing import Any

import anyio
import mcp_types as types
from mcp.server import Server
from mcp.server.stdio import stdio_server


async def list_tools(context: Any, params: Any) -> types.ListToolsResult:  # noqa: ARG001 - the SDK's signature
    """No tools."""
    return types.ListToolsResult(tools=[])


async def main() -> None:
    """Answer one host until it leaves."""
    server: Server[Any] = Server("bare", on_list_tools=list_tools)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    anyio.run(main)
