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
        by_phase: bytes alive at each instant, a row each, in the order of ``phases.PHASES``.
    """

    peak: Any
    pooled: Any
    host: Any
    nvme: Any
    by_phase: Any


def stage_figures(place: Place, layers: Mapping[Any, GroupValues], count: int) -> StageFigures:
    """What ``count`` stages or layouts hold."""
    apart = reduces_on_own_stream(place)
    totals: Totals = {}
    shards: Totals = {}
    for line in outer_lines(place):
        _add(totals, line)
        if apart is not False and line.term.slot in phases.GRADIENT_SHARDS:
            _add(shards, line)
    for line in _together(layer_lines(place, layers)):
        _add(totals, line, whole=True)
    nothing = np.zeros(count)
    rows = {phase: np.broadcast_to(np.asarray(total, dtype=np.float64), count) for phase, total in totals.items()}
    by_phase = [rows.get(phase, nothing) for phase in phases.PHASES]
    peak = np.maximum.reduce(by_phase)
    pooled = peak
    if shards:
        rest = np.maximum.reduce([rows[phase] - shards.get(phase, 0.0) for phase in phases.PHASES if phase in rows])
        held = np.maximum.reduce([np.broadcast_to(each, count) for each in shards.values()])
        pooled = np.where(apart, rest + held, peak)
    return StageFigures(peak, pooled, rows.get(phases.HOST, nothing), rows.get(phases.NVME, nothing), by_phase)


def _together(lines: Iterable[Line]) -> Iterable[Line]:
    """Lines that are alive together as one."""
    alike: dict[int, list[Line]] = {}
    for line in lines:
        alike.setdefault(id(line.presence), []).append(line)
    for same in alike.values():
        first = same[0]
        yield (
            first
            if len(same) == 1
            else Line(first.term, first.values, sum(each.amount for each in same), first.presence)
        )


def _add(totals: Totals, line: Line, *, whole: bool = False) -> None:
    """Bytes of a line in each phase where it is alive; instants that count alike are multiplied once."""
    made: dict[int, Any] = {}
    for phase, count in line.presence.items():
        if isinstance(count, int) and not count:
            continue
        if id(count) not in made:
            amount = line.amount * count
            made[id(count)] = amount if whole or isinstance(count, int) else np.round(amount)
        totals[phase] = totals.get(phase, 0.0) + made[id(count)]
