"""Pages that a host may show beside an answer (the MCP Apps extension). The answer's text is the same without them."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.tool import Tool

EXTENSION: Final = "io.modelcontextprotocol/ui"
MEDIA_TYPE: Final = "text/html;profile=mcp-app"


@dataclass(frozen=True)
class View:
    """One page.

    Attributes:
        uri: its address.
        title: its name for people.
        description: what it shows.
        file: the page itself, which loads nothing else.
        tools: names of the tools whose answers it shows.
    """

    uri: str
    title: str
    description: str
    file: str
    tools: tuple[str, ...]

    @property
    def html(self) -> str:
        """The page."""
        return files(__name__).joinpath(self.file).read_text(encoding="utf-8")


VIEWS: Final = (
    View(
        uri="ui://trainfit/memory.html",
        title="Memory per GPU",
        description="The terms at the peak as bars, against what is usable.",
        file="memory.html",
        tools=("estimate_memory", "recommend_setup"),
    ),
)


def offered_views(tools: Sequence[Tool]) -> tuple[View, ...]:
    """Those that show an answer of an offered tool."""
    return tuple(view for view in VIEWS if any(tool.name in view.tools for tool in tools))


def meta_of(tool: Tool) -> dict[str, Any] | None:
    """What a tool's definition says of its view; None when it has none."""
    uri = next((view.uri for view in VIEWS if tool.name in view.tools), None)
    return None if uri is None else {"ui": {"resourceUri": uri}}
