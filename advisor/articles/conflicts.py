"""Where the articles disagree with each other, with the literature or with real frameworks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from advisor.catalog.reader import read_catalog_file
from advisor.errors import unknown_name


@dataclass(frozen=True)
class Conflict:
    """One disagreement.

    Attributes:
        said: what an article says.
        fact: what holds instead, and what TrainFit does.
        articles: profiles whose arithmetic it touches; empty where no estimate meets it.
        when: an argument of a case that must be in use for it to matter, such as ``expert_parallel``.
    """

    id: str
    title: str
    said: str
    fact: str
    articles: tuple[str, ...]
    when: str


@cache
def conflicts() -> Mapping[str, Conflict]:
    """Every conflict by its id."""
    rows = read_catalog_file("knowledge/conflicts.yaml")
    return {
        key: Conflict(key, row["title"], row["said"], row["fact"], tuple(row.get("articles", ())), row.get("when", ""))
        for key, row in rows.items()
    }


def find_conflict(key: str) -> Conflict:
    """The conflict of that id.

    Raises:
        AdvisorError: ``unknown_entry`` with the nearest ids.
    """
    if key not in conflicts():
        raise unknown_name("entry", key, conflicts(), pointer="/id")
    return conflicts()[key]
