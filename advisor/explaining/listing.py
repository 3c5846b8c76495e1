"""The ids that ``explain`` takes, as entries that a host can list beside those of the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from advisor.articles import case_ids, find_case
from advisor.catalog.reader import entry_ids
from advisor.explaining.entries import entries
from advisor.types.answers import CatalogEntry

#: The kinds of entries that each listed kind gathers, beside topics (written as data) and numbers (the articles' own).
GATHERED: Final = {
    "terms": ("term", "time"),
    "symbols": ("symbol",),
    "rules": ("constraint", "step", "advice", "rung", "preference"),
    "conflicts": ("conflict",),
}


def list_explained(kind: str, query: str | None) -> tuple[CatalogEntry, ...]:
    """What can be explained of one kind of ``EXPLAINED``, where the id or the title holds ``query``."""
    wanted = (query or "").lower()
    listed = _numbers() if kind == "numbers" else _entries(kind)
    return tuple(each for each in listed if wanted in each.id.lower() or wanted in each.title.lower())


def _entries(kind: str) -> Iterator[CatalogEntry]:
    kinds = entry_ids("knowledge/topics") if kind == "topics" else GATHERED[kind]
    for entry in entries().values():
        if entry.kind in kinds:
            yield CatalogEntry(id=entry.id, kind=kind, title=entry.title, sources=entry.sources)


def _numbers() -> Iterator[CatalogEntry]:
    for case in map(find_case, case_ids()):
        section = f"{case.article} §{case.section}"
        yield CatalogEntry(id=case.id, kind="numbers", title=case.title, sources=(section,))
