"""Our figure beside a counted or measured one: the error of a row, the figures of many, the worst of them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from advisor.errors import AdvisorError

WORST_SHOWN = 12


@dataclass(frozen=True)
class Comparison:
    """One row.

    Attributes:
        name: the row's name in its file.
        group: what the row is an example of; figures are also given by group.
        fact: the counted or measured figure.
        ours: the product's figure; 0 where it refuses the row.
        refusal: why the product refuses the row; empty where it answers.
    """

    name: str
    group: str
    fact: float
    ours: float
    refusal: str = ""

    @property
    def error(self) -> float:
        """Our excess as a share of the fact; a refused row is wholly wrong, -1."""
        return self.ours / self.fact - 1


def compare(name: str, group: str, fact: float, predict: Callable[[], float]) -> Comparison:
    """The row that ``predict`` answers or refuses."""
    try:
        return Comparison(name, group, fact, predict())
    except AdvisorError as error:
        return Comparison(name, group, fact, 0, f"{error.code} at {error.pointer}: {error.detail}")


def within(rows: Sequence[Comparison], share: float) -> float:
    """The share of rows whose error is at most ``share``."""
    return sum(abs(row.error) <= share for row in rows) / len(rows)


def bias(rows: Sequence[Comparison]) -> float:
    """The mean signed error."""
    return statistics.fmean(row.error for row in rows)


def median_error(rows: Sequence[Comparison]) -> float:
    """The median of the errors' sizes."""
    return statistics.median(abs(row.error) for row in rows)


def error_at(rows: Sequence[Comparison], share: float) -> float:
    """The smallest error size that at least ``share`` of the rows do not exceed: 0.9 gives p90, 1 the largest."""
    sizes = sorted(abs(row.error) for row in rows)
    return sizes[math.ceil(share * len(sizes)) - 1]


def worst(rows: Sequence[Comparison]) -> list[Comparison]:
    """The rows with the largest errors, largest first."""
    return sorted(rows, key=lambda row: (-abs(row.error), row.name))[:WORST_SHOWN]


def print_worst(rows: Sequence[Comparison], counted_by: str) -> None:
    """A table of the worst rows."""
    print(f"{'error':>8}{'ours':>20}{counted_by:>20}  the {WORST_SHOWN} worst of {len(rows)} rows")
    for row in worst(rows):
        print(f"{row.error:>+8.2%}{row.ours:>20,}{row.fact:>20,}  {row.name} {row.refusal}".rstrip())
