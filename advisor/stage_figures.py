"""Peaks of many stages or many layouts at once: the lines of a stage over numpy columns.

Amounts are whole bytes and layers count whole, so slots that are alive together are added up first: the sums are those
of ``estimate`` to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor import phases
from advisor.lines import GroupValues, Line, layer_lines, outer_lines, reduces_on_own_stream
from advisor.placement import Place

Totals = dict[str, Any]


@dataclass(frozen=True)
class StageFigures:
    """Bytes of several stages, or of one stage in several layouts: columns of equal length.

    Attributes:
        peak: at the instant that needs most.
        pooled: what the allocator's pools add up to; see ``StageBreakdown.pooled_bytes``.
        host: rest in CPU memory, for one rank.
        nvme: rest on NVMe, for one rank.
        instant: the peak's place in ``phases.PHASES``; None where nobody asked.
    """

    peak: Any
    pooled: Any
    host: Any
    nvme: Any
    instant: Any


def stage_figures(
    place: Place, layers: Mapping[Any, GroupValues], count: int, rows: Any = None, *, instants: bool = False
) -> StageFigures:
    """What ``count`` stages or layouts hold.

    Args:
        place: a column of stages, or a stage in columns of layouts.
        layers: what a layer keeps.
        count: how many stages or layouts there are.
        rows: for each of them its row in what layers keep; None where that is the same for all.
        instants: whether to find the instant of each peak.
    """
    apart = reduces_on_own_stream(place)
    totals: Totals = {}
    shards: Totals = {}
    always: Any = 0.0
    for line in outer_lines(place):
        if _steady(line):
            always = always + _bytes(line, next(iter(line.presence.values())))
        else:
            _add(totals, line)
        if apart is not False and line.term.slot in phases.GRADIENT_SHARDS:
            _add(shards, line)
    for line in _together(layer_lines(place, layers), rows):
        _add(totals, line, whole=True)

    def column(amount: Any) -> Any:
        return np.broadcast_to(np.asarray(amount, dtype=np.float64), count)

    by_phase = [column(totals.get(phase, 0.0)) for phase in phases.PHASES]
    peak = np.maximum.reduce(by_phase) + always
    pooled = peak
    if shards:
        rest = np.maximum.reduce([column(totals.get(phase, 0.0) - shards.get(phase, 0.0)) for phase in phases.PHASES])
        held = np.maximum.reduce([column(amount) for amount in shards.values()])
        pooled = np.where(apart, rest + always + held, peak)
    host, nvme = (column(totals.get(where, 0.0)) for where in (phases.HOST, phases.NVME))
    return StageFigures(peak, pooled, host, nvme, np.argmax(by_phase, axis=0) if instants else None)


def _steady(line: Line) -> bool:
    """Whether a line counts alike at every instant, so that it is added once and to all of them."""
    if len({id(count) for count in line.presence.values()}) != 1:
        return False
    return line.presence.keys() == set(phases.PHASES)


def _together(lines: Iterable[Line], rows: Any) -> Iterable[Line]:
    """Lines that are alive together as one, a row a layout."""
    alike: dict[int, list[Line]] = {}
    for line in lines:
        alike.setdefault(id(line.presence), []).append(line)
    for same in alike.values():
        first, amount = same[0], sum(each.amount for each in same)
        spread = amount[rows] if rows is not None and isinstance(amount, np.ndarray) else amount
        yield Line(first.term, first.values, spread, first.presence)


def _add(totals: Totals, line: Line, *, whole: bool = False) -> None:
    """Bytes of a line in each phase where it is alive; instants that count alike are multiplied once."""
    made: dict[int, Any] = {}
    for phase, count in line.presence.items():
        if isinstance(count, int) and not count:
            continue
        if id(count) not in made:
            made[id(count)] = line.amount * count if whole else _bytes(line, count)
        totals[phase] = totals.get(phase, 0.0) + made[id(count)]


def _bytes(line: Line, count: Any) -> Any:
    """Whole bytes of a line that counts so often."""
    amount = line.amount * count
    return amount if isinstance(count, int) else np.round(amount)
