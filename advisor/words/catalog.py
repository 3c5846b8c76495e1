"""The text of ``list_catalog``: what can be named, and what is known of it where few are left."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from advisor.words.phrases import argument, joined

if TYPE_CHECKING:
    from collections.abc import Iterable

    from advisor.types import CatalogAnswer, CatalogEntry

MOST_ENTRIES: Final = 25
MOST_NAMES: Final = 12
FEW_ENTRIES: Final = 4  # of so few, the facts are told as well


def catalog_text(answer: CatalogAnswer) -> str:
    """The answer of ``list_catalog`` as text."""
    few = answer.total <= FEW_ENTRIES
    listed = [line for entry in answer.entries for line in _entry_lines(entry)] if few else _names(answer)
    return joined([[f"{answer.total} entries. Kinds: {', '.join(answer.kinds)}."], listed])


def _names(answer: CatalogAnswer) -> list[str]:
    """One line an entry where one kind fits on a page, else one line a kind."""
    groups = [(kind, list(group)) for kind, group in groupby(answer.entries, key=lambda entry: entry.kind)]
    if len(groups) == 1 and answer.total <= MOST_ENTRIES:
        return [f"- {entry.id}: {entry.title}{_also(entry)}" for entry in answer.entries]
    most = MOST_NAMES if len(groups) > 1 else 2 * MOST_ENTRIES
    return [f"- {kind}: {_capped([entry.id for entry in group], most)}" for kind, group in groups]


def _entry_lines(entry: CatalogEntry) -> list[str]:
    """An entry with its facts."""
    facts = [f"{name.replace('_', ' ')} {_fact(value)}" for name, value in entry.facts.items() if _fact(value)]
    known = [f"  {'; '.join(facts)}"] if facts else []
    sources = [f"  sources: {', '.join(entry.sources)}; checked on {entry.checked_on}"] if entry.sources else []
    return [f"- {entry.kind}: {entry.id}, {entry.title}{_also(entry)}", *known, *sources]


def _also(entry: CatalogEntry) -> str:
    return f" (also {_capped(entry.aliases, FEW_ENTRIES)})" if entry.aliases else ""


def _fact(value: Any) -> str:
    """A plain fact, or a figure with its unit; larger objects are left to the JSON answer."""
    if isinstance(value, dict):
        return f"{value['value']} {value.get('unit', '')}".rstrip() if "value" in value else ""
    return "" if isinstance(value, list) else argument(value)


def _capped(names: Iterable[str], most: int) -> str:
    listed = list(names)
    left = len(listed) - most
    return ", ".join(listed[:most]) + (f" and {left} more" if left > 0 else "")
