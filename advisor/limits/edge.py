"""Both sides of a limit: the last value that fits, the first that does not, and what grows between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor import budget, certainty
from advisor.answer import verdict
from advisor.errors import AdvisorError
from advisor.estimate import Breakdown
from advisor.node_memory import host, host_warnings
from advisor.search.room import times_of
from advisor.types.host import Host
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
        """Whether it fits with the headroom left free, on the GPU and on its node."""
        return self.times_too_large <= 1

    @cached_property
    def times_too_large(self) -> float:
        """The need as a multiple of what there is; at most 1 where it fits."""
        return times_of(self.breakdown)

    @cached_property
    def host(self) -> Host:
        """What it needs of a node."""
        return host(self.breakdown)

    def shown(self) -> AtLimit:
        """As the answer says it."""
        return AtLimit(
            value=self.value,
            peak_bytes=self.breakdown.peak_bytes,
            reserved_bytes=certainty.reserved_bytes(self.breakdown),
            usable_bytes=self.breakdown.usable_bytes,
            verdict=verdict(self.breakdown),
            host_bytes_per_node=self.host.most_bytes_per_node,
            host_verdict=self.host.verdict,
        )

    def by_slot(self, *, of_the_node: bool) -> Mapping[str, int]:
        """Bytes of each slot at the GPU's peak, or of a node at the instant that needs most of it."""
        if not of_the_node:
            return self.breakdown.by_slot
        (binding,) = (each for each in self.host.instants if each.instant == self.host.binding)
        return {part.slot: part.bytes for part in binding.parts}


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


def first_that_fits(candidates: Sequence[Any], measure: Measure, leap: Leap = _no_leap, *, singly: int = 0) -> Edge:
    """The edge along candidates of falling need.

    Args:
        candidates: what to try, in order.
        measure: computes one of them.
        leap: from one that does not fit, where to go on at the earliest.
        singly: how many of the first are tried one by one, for the need of a node may rise among them.
    """
    edge = _between(candidates, measure, lambda tried: tried is None or not tried.fits, leap, singly)
    return Edge(edge.outside, edge.inside, edge.tried)


def _between(
    candidates: Sequence[Any],
    measure: Measure,
    holds: Callable[[Tried | None], bool],
    leap: Leap = _no_leap,
    singly: int = 0,
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
        step = step if high > singly else 1
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
        warnings=(*host_warnings(case, decided.host), *case.warnings) if case and decided else (),
        versions=versions(),
    )


def _growths(edge: Edge) -> tuple[Growth, ...]:
    """What grows most across the limit; what is largest where nothing fits: of a node where that alone has no room."""
    if edge.outside is None:
        return ()
    of_the_node = edge.outside.shown().verdict in ("comfortable", "fits")
    before = edge.inside.by_slot(of_the_node=of_the_node) if edge.inside else {}
    rows = [
        Growth(slot=slot, bytes=before.get(slot, 0), bytes_beyond=size)
        for slot, size in edge.outside.by_slot(of_the_node=of_the_node).items()
    ]
    grown = [row for row in rows if row.bytes_beyond > row.bytes]
    return tuple(sorted(grown, key=lambda row: row.bytes - row.bytes_beyond)[:MOST_GROWTHS])
