"""The tools that give a worked number of an article beside `explain`: which job to ask, and what of its answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import advisor
from advisor.catalog.reader import read_yaml
from advisor.types import LimitAnswer, MemoryAnswer, ModelAnswer

DATA = Path(__file__).parent / "data" / "article_doors.yaml"
#: Slots by how they begin, for words that name several.
SLOTS: Mapping[str, tuple[str, ...]] = {"all": ("",), "states": ("weights", "gradients", "optimizer")}


@dataclass(frozen=True)
class Door:
    """A call of a tool, and what of its answer is the number."""

    tool: str
    arguments: Mapping[str, Any]
    read: str

    def value(self) -> Any:
        """The number, or the verdict, that the tool answers."""
        answer = getattr(advisor, self.tool)(**self.arguments)
        if isinstance(answer, ModelAnswer):
            return answer.parameters.total
        if isinstance(answer, LimitAnswer):
            return answer.value
        return _of_memory(answer, self.read)


def _of_memory(answer: MemoryAnswer, read: str) -> Any:
    if read == "margin":
        return answer.margin_bytes
    if read in ("fits", "too much"):
        return (answer.verdict == "does_not_fit") is (read == "too much")
    wanted = tuple(start for word in read.split() for start in SLOTS.get(word, (word,)))
    return sum(term.bytes for term in answer.terms if term.slot.startswith(wanted))


@cache
def doors() -> Mapping[str, Door]:
    """The second door of each worked number that has one, by its id."""
    return dict(_doors())


def _doors() -> Iterator[tuple[str, Door]]:
    for row in read_yaml(DATA):
        for case_id, read in row["numbers"].items():
            yield case_id, Door(row["tool"], row["arguments"], read)
