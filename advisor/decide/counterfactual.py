"""Why not less, why not more: one lever moved on its own, and with everything else searched again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.constraints.legality import check
from advisor.decide.moves import alone
from advisor.estimate import estimate
from advisor.search import cost
from advisor.search.room import times_of
from advisor.types.columns import OFFLOAD_TARGETS, RECOMPUTE_POLICIES
from advisor.units import format_bytes, format_gpus

if TYPE_CHECKING:
    from advisor.search.choose import Found
    from advisor.types.case import Layout

#: Differences below this share are not worth a number.
SAME = 0.005


def why_not(found: Found, lever: str, value: Any | None) -> str:
    """One or two sentences on the layout with ``lever`` at ``value`` instead of the chosen one's."""
    if value is None:
        return ""
    if lever not in found.case.free:
        return f"{lever} was given, so nothing else was tried."
    return " ".join(part for part in (_alone(found, lever, value), _searched_again(found, lever, value)) if part)


def _alone(found: Found, lever: str, value: Any) -> str:
    named, case = f"{lever}={value} alone", found.case
    layout = alone(case, case.layout, lever, value)
    if layout is None:
        return f"{named} does not divide the {format_gpus(case.cluster.gpus)}."
    broken = check(case.model_copy(update={"layout": layout}))
    if broken:
        return f"{named} is illegal: {broken[0].message} [{broken[0].id}]."
    memory = estimate(case.model_copy(update={"layout": layout}))
    if memory.reserved_bytes > found.limit_bytes:
        return f"{named} misses by {format_bytes(memory.reserved_bytes - found.limit_bytes)}."
    if times_of(memory) > 1:
        return f"{named} fits the GPUs and needs more of the node than it has."
    return f"{named} fits and {_priced(found, layout)}."


def _priced(found: Found, layout: Layout) -> str:
    """How the other layout's cost compares with the winner's, as the end of a sentence."""
    ours = float(cost.total(found.case, found.case.layout))
    more = float(cost.total(found.case, layout)) / ours - 1
    if more > SAME:
        return f"takes {more:.0%} longer" if more >= 0.01 else f"takes {more:.1%} longer"  # noqa: PLR2004 - digits shown
    return _within_ties(more)


def _within_ties(more: float) -> str:
    if more >= -SAME:
        return "takes as long; the simpler layout was taken"
    return f"takes {-more:.1%} less, within what counts as equal or on a lower rung; the simpler layout was taken"


def _searched_again(found: Found, lever: str, value: Any) -> str:
    """The best layout of the opened rungs that has this value, whatever the rest; nothing where none was legal."""
    costs = _costs_with(found, lever, value)
    if found.winner is None or costs is None:
        return ""
    if not costs:
        return f"With {lever}={value} and everything else searched again nothing fits."
    more = min(costs) / found.winner.cost - 1
    if more > SAME:
        return f"With everything else searched again the best takes {more:.0%} longer."
    return "With everything else searched again the best takes about as long."


def _costs_with(found: Found, lever: str, value: Any) -> list[float] | None:
    """The lowest cost in each opened rung among layouts that have the value and fit; None where no row has it."""
    having = [(rows, getattr(rows.columns, lever) == _number(value)) for rows in found.opened]
    if not any(has.any() for _, has in having):
        return None
    costs = [rows.cost[rows.fits & has] for rows, has in having]
    return [float(column.min()) for column in costs if len(column)]


def _number(value: Any) -> float:
    if not isinstance(value, str):
        return float(value)
    return float((RECOMPUTE_POLICIES if value in RECOMPUTE_POLICIES else OFFLOAD_TARGETS).index(value))
