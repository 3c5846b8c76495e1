"""Faces of the advisor for hosts: MCP tools, JSON endpoints, command line.

``tools`` is a name that other distributions use too; :data:`PRODUCT` lets start-up see that this is the right one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.errors import unknown_name
from tools.describe_model import DESCRIBE_MODEL
from tools.estimate_memory import ESTIMATE_MEMORY
from tools.explore import EXPLORE
from tools.find_limit import FIND_LIMIT
from tools.list_catalog import LIST_CATALOG
from tools.recommend_setup import RECOMMEND_SETUP

if TYPE_CHECKING:
    from tools.tool import Tool

__all__ = ["PRODUCT", "TOOLS", "find_tool"]

PRODUCT: Final = "trainfit"

#: Every tool, in the order users see them.
TOOLS: Final[tuple[Tool, ...]] = (RECOMMEND_SETUP, ESTIMATE_MEMORY, EXPLORE, FIND_LIMIT, DESCRIBE_MODEL, LIST_CATALOG)


def find_tool(name: str) -> Tool:
    """The tool of that name; hyphens are read as underscores.

    Raises:
        AdvisorError: ``unknown_tool`` with the nearest names.
    """
    by_name = {tool.name: tool for tool in TOOLS}
    if name.replace("-", "_") not in by_name:
        raise unknown_name("tool", name[:80], by_name, pointer="")
    return by_name[name.replace("-", "_")]
