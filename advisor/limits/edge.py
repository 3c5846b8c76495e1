"""Both sides of a limit: the last value that fits, the first that does not, and what grows between them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from advisor import budget, certainty
from advisor.answer import verdict
from advisor.errors import AdvisorError
from advisor.estimate import Breakdown
from advisor.search.choose import limit_bytes
from advisor.types.sweeps import AtLimit, Growth, LimitAnswer, LimitOf, NextLimit
from advisor.versions import versions

MOST_GROWTHS = 3


@dataclass(frozen=True)
class Tried:
    """One value, computed."""

    value: int | str
    breakdown: Breakdown

    @property
    def fits(self) -> bool:
        """Whether it fits with the headroom left free."""
        return self.times_too_large <= 1

    @property
    def times_too_large(self) -> float:
        """The memory that it needs as a multiple of what there is; at most 1 where it fits."""
        limit = limit_bytes(self.breakdown.case, self.breakdown.usable_bytes)
        return certainty.reserved_bytes(self.breakdown) / limit if limit > 0 else math.inf

    def shown(self) -> AtLimit:
        """As the answer says it."""
        return AtLimit(
            value=self.value,
            peak_bytes=self.breakdown.peak_bytes,
            reserved_bytes=certainty.reserved_bytes(self.breakdown),
            usable_bytes=self.breakdown.usable_bytes,
            verdict=verdict(self.breakdown),
        )


#: Computes one candidate; None where the framework refuses it.
Measure = Callable[[Any], "Tried | None"]


#: From the place of a candidate that does not fit, the place of one that may.
Leap = Callable[[int, "Tried | None"], int]


def _no_leap(place: int, _: Tried | None) -> int:
    return place


@dataclass(frozen=True)
class Edge:
    """The value that fits and its neighbour that does not; either may be missing."""

    inside: Tried | None
    outside: Tried | None
    tried: int


def last_that_fits(candidates: Sequence[Any], measure: Measure) -> Edge:
    """The edge along candidates of rising memory: doubling until one does not fit, then halving."""
    return _between(candidates, measure, lambda tried: tried is not None and tried.fits)


def first_that_fits(candidates: Sequence[Any], measure: Measure, leap: Leap = _no_leap) -> Edge:
    """The edge along candidates of falling need; from one that does not fit, ``leap`` may go on at a later one."""
    edge = _between(candidates, measure, lambda tried: tried is None or not tried.fits, leap)
    return Edge(edge.outside, edge.inside, edge.tried)


def _between(
    candidates: Sequence[Any], measure: Measure, holds: Callable[[Tried | None], bool], leap: Leap = _no_leap
) -> Edge:
    """The last candidate for which ``holds``, and the next one."""
    known: dict[int, Tried | None] = {}

    def at(index: int) -> Tried | None:
        if index not in known:
            known[index] = measure(candidates[index])
        return known[index]

    low, high, step = -1, 0, 1
    while high < len(candidates) and holds(at(high)):
        budget.refuse_when_spent("the limit was found")
        further = leap(high, at(high))
        low, high, step = (high, further, 1) if further > high + step else (high, high + step, step * 2)
    high = min(high, len(candidates))
    while high - low > 1:
        middle = (low + high) // 2
        try:
            budget.refuse_when_spent("the values in between")
            low, high = (middle, high) if holds(at(middle)) else (low, middle)
        except AdvisorError as error:
            if error.code != "beyond_budget" or high == len(candidates):  # no limit is known, not even a rough one
                raise
            break
    return Edge(at(low) if low >= 0 else None, at(high) if high < len(candidates) else None, len(known))


def limit_answer(
    of: LimitOf, edge: Edge, notes: Sequence[str] = (), next_limits: Sequence[NextLimit] = ()
) -> LimitAnswer:
    """The answer that an edge gives."""
    decided = edge.inside or edge.outside
    case = decided.breakdown.case if decided else None
    return LimitAnswer(
        of=of,
        value=edge.inside.value if edge.inside else None,
        at=edge.inside.shown() if edge.inside else None,
        beyond=edge.outside.shown() if edge.outside else None,
        stopped_by=_growths(edge),
        next_limits=tuple(next_limits),
        layout=edge.inside.breakdown.case.layout if edge.inside else None,
        tried=edge.tried,
        notes=(*notes, *budget.left_out()),
        assumptions=case.assumptions if case else (),
        warnings=case.warnings if case else (),
        versions=versions(),
    )


def _growths(edge: Edge) -> tuple[Growth, ...]:
    """What grows most across the limit; what is largest where nothing fits."""
    if edge.outside is None:
        return ()
    before = edge.inside.breakdown.by_slot if edge.inside else {}
    rows = [
        Growth(slot=slot, bytes=before.get(slot, 0), bytes_beyond=size)
        for slot, size in edge.outside.breakdown.by_slot.items()
    ]
    grown = [row for row in rows if row.bytes_beyond > row.bytes]
    return tuple(sorted(grown, key=lambda row: row.bytes - row.bytes_beyond)[:MOST_GROWTHS])
