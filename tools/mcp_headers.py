"""Arguments that stand in a header too, so that a gateway reads them without parsing a body (SEP-2243).

A tool says which (``Tool.headers``), its listing says it to clients of the newer era, and a call over HTTP whose
headers say other than its body is refused: what a gateway acts on must be what is computed. The older era knows none
of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import X_MCP_HEADER_KEY, mcp_param_headers, validate_mcp_param_headers, x_mcp_header_map
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from advisor.errors import AdvisorError
from tools.tool import error_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tools.schema import Schema
    from tools.tool import Tool

LONGEST_SHOWN: Final = 120


def listed_schema(tool: Tool, protocol_version: str) -> Schema:
    """The schema of a tool's arguments as a client of that version is shown it."""
    return _with_headers(tool) if protocol_version in MODERN_PROTOCOL_VERSIONS else tool.input_schema


def refuse_other_headers(tool: Tool, arguments: Mapping[str, Any], context: Any) -> None:
    """Refuse a call whose headers do not repeat its arguments.

    Raises:
        MCPError: with the protocol's code for it, which answers with status 400; its data is an error as on every door.
    """
    request = getattr(context, "request", None)
    if not tool.headers or request is None or context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        return
    schema = _with_headers(tool)
    rejection = validate_mcp_param_headers(schema, arguments, request.headers)
    if rejection is None:
        return
    meant = mcp_param_headers(x_mcp_header_map(schema), arguments)
    lines = [f"{name}: {value}"[:LONGEST_SHOWN] for name, value in meant.items()]
    detail = f"{rejection.message}; such a call carries {' and '.join(map(repr, lines)) or 'no such header'}"
    error = AdvisorError("header_mismatch", detail, suggestions=lines)
    raise MCPError(rejection.code, error_text(error), error.as_dict())


def _with_headers(tool: Tool) -> Schema:
    properties = {
        name: {**field, X_MCP_HEADER_KEY: tool.headers[name]} if name in tool.headers else field
        for name, field in tool.input_schema["properties"].items()
    }
    return {**tool.input_schema, "properties": properties}
