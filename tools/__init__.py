"""Faces of the advisor for hosts: MCP tools, JSON endpoints, command line.

``tools`` is a name that other distributions use too; :data:`PRODUCT` lets start-up see that this is the right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.errors import unknown_name
from advisor.request import tool_name
from tools.describe_model import DESCRIBE_MODEL
from tools.estimate_memory import ESTIMATE_MEMORY
from tools.explain import EXPLAIN
from tools.explore import EXPLORE
from tools.find_limit import FIND_LIMIT
from tools.list_catalog import LIST_CATALOG
from tools.recommend_setup import RECOMMEND_SETUP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.tool import Tool

__all__ = ["PRODUCT", "TOOLS", "allowed_tools", "find_tool"]

PRODUCT: Final = "trainfit"

#: Every tool, in the order users see them.
TOOLS: Final[tuple[Tool, ...]] = (
    RECOMMEND_SETUP,
    ESTIMATE_MEMORY,
    EXPLORE,
    FIND_LIMIT,
    DESCRIBE_MODEL,
    EXPLAIN,
    LIST_CATALOG,
)


def find_tool(name: str, among: Sequence[Tool] = TOOLS) -> Tool:
    """The tool of that name; hyphens are read as underscores, a name of an earlier release as the present one.

    Raises:
        AdvisorError: ``unknown_tool`` with the nearest names.
    """
    by_name = {tool.name: tool for tool in among}
    if tool_name(name) not in by_name:
        raise unknown_name("tool", name[:80], by_name, pointer="")
    return by_name[tool_name(name)]


def allowed_tools(names: str | None, among: Sequence[Tool] = TOOLS) -> tuple[Tool, ...]:
    """The tools that a comma-separated list names, in the order users see them; all when it is absent or empty.

    Raises:
        AdvisorError: ``unknown_tool`` for a name that is none of them.
    """
    given = [name.strip() for name in (names or "").split(",") if name.strip()]
    kept = {find_tool(name, among).name for name in given} or {tool.name for tool in among}
    return tuple(tool for tool in among if tool.name in kept)
