"""The text of ``list_catalog``: what can be named."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.words.phrases import joined

if TYPE_CHECKING:
    from advisor.types import CatalogAnswer, CatalogEntry

MOST_ENTRIES: Final = 25


def catalog_text(answer: CatalogAnswer, full: bool = False) -> str:
    """The answer of ``list_catalog`` as text; ``full`` lists every entry."""
    shown = answer.entries if full else answer.entries[:MOST_ENTRIES]
    left = answer.total - len(shown)
    blocks = [
        [f"{answer.total} entries. Kinds: {', '.join(answer.kinds)}."],
        [_entry_line(entry) for entry in shown],
        [f"… and {left} more: narrow with kind and query."] if left else [],
    ]
    return joined(blocks)


def _entry_line(entry: CatalogEntry) -> str:
    aliases = f" (also {', '.join(entry.aliases[:4])})" if entry.aliases else ""
    return f"- {entry.kind}: {entry.id}, {entry.title}{aliases}"
