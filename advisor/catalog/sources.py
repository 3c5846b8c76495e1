"""Where the facts come from: papers, code, documentation, public reports, and figures that were only recalled."""

from __future__ import annotations

from functools import cache
from typing import Literal

from pydantic import Field

from advisor.catalog.reader import read_catalog_file
from advisor.errors import unknown_name
from advisor.types.base import Value


class Source(Value):
    """Something that a value, a term or a rule cites."""

    key: str
    kind: Literal["paper", "article", "code", "documentation", "report", "recalled"]
    title: str
    authors: str
    year: int | None = Field(description="None: not known")
    url: str = Field(description="public address; empty for a recalled figure or an article without one")
    checked_on: str = Field(description="the day the entry was written or last checked")


def source_keys() -> tuple[str, ...]:
    """Every key that may be cited, in alphabetical order."""
    return tuple(read_catalog_file("sources.yaml"))


@cache
def source(key: str) -> Source:
    """The source with this key.

    Raises:
        AdvisorError: ``unknown_source`` with the nearest keys.
    """
    entries = read_catalog_file("sources.yaml")
    if key not in entries:
        raise unknown_name("source", key, entries, pointer="")
    entry = entries[key]
    return Source(key=key, **{**entry, "checked_on": str(entry["checked_on"])})
