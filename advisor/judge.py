"""Peaks of many layouts at once: the terms of ``estimate`` over columns of layouts.

Amounts are whole bytes and layers count whole, so slots that are alive together are added up first: the sums are those
of ``estimate`` to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from advisor import phases
from advisor.columnwise import at_least, at_most
from advisor.estimate import (
    GroupValues,
    Line,
    layer_lines,
    layer_values,
    outer_lines,
    reduces_on_own_stream,
    usable_bytes,
)
from advisor.placement import Place
from advisor.types.case import Case
from advisor.types.columns import Columns

#: Rows evaluated at once: the working arrays of a chunk stay in the processor's cache.
CHUNK_ROWS = 8192

Totals = dict[str, Any]


@dataclass(frozen=True)
class Judged:
    """Peaks of many layouts, on each one's worst rank; host and NVMe bytes per node."""

    peak_bytes: Any
    reserved_bytes: Any
    usable_bytes: int
    host_bytes: Any
    nvme_bytes: Any


def judge(case: Case, columns: Columns) -> Judged:
    """Peak bytes of every layout in the columns, by the same terms as ``estimate``.

    Only stages that can bind are evaluated; see ``_binding_stages``.
    """
    starts = range(0, len(columns), CHUNK_ROWS)
    chunks = [_judge_chunk(case, columns.take(slice(start, start + CHUNK_ROWS))) for start in starts]
    peak, pooled, host, nvme = np.concatenate(chunks, axis=1) if chunks else np.zeros((4, 0))
    reserved = np.round(pooled * (1 + case.training.fragmentation))
    ranks = case.cluster.gpus_per_node
    return Judged(peak, reserved, usable_bytes(case), host * ranks, nvme * ranks)


def _judge_chunk(case: Case, columns: Columns) -> Any:
    """Peak, pools, host and NVMe bytes of each layout's worst stage, a row each."""
    layers = layer_values(case, columns)
    stages = _binding_stages(case, columns)
    worst = _stage_figures(Place(case, columns, stages[0]), layers)
    for index, stage in enumerate(stages[1:], start=1):
        rows = np.flatnonzero(np.all([stage != earlier for earlier in stages[:index]], axis=0))
        if len(rows):
            place = Place(case, columns.take(rows), stage[rows])
            worst[:, rows] = np.maximum(worst[:, rows], _stage_figures(place, _taken(layers, rows)))
    return worst


def _taken(layers: Mapping[Any, GroupValues], rows: Any) -> Mapping[Any, GroupValues]:
    """What layers keep, for some of the layouts."""
    return {
        group: replace(held, amounts={slot: _row(amount, rows) for slot, amount in held.amounts.items()})
        for group, held in layers.items()
    }


def _row(amount: Any, rows: Any) -> Any:
    return amount[rows] if isinstance(amount, np.ndarray) and amount.ndim else amount


def _binding_stages(case: Case, columns: Columns) -> list[Any]:
    """Stages, one column each, among which the highest peak lies.

    Later stages hold fewer micro-batches, so of stages with equal layers the first binds: stage 0 (embedding), stage
    1, the first with a layer more than the others, the first whose layers all route, and the last (head).
    """
    pp = columns.pipeline_parallel
    last = pp - 1
    fuller = at_most(last - case.model.layers % pp, last)
    stages = [last * 0, at_most(last * 0 + 1, last), fuller, last]
    if case.model.moe_layers and case.model.moe_layers[0] > 0:
        per_stage = at_least(case.model.layers // pp, 1)
        routing = at_most(-(-case.model.moe_layers[0] // per_stage), last)
        stages += [routing, at_least(routing, fuller)]
    return stages


def _stage_figures(place: Place, layers: Mapping[Any, GroupValues]) -> Any:
    apart = reduces_on_own_stream(place)
    totals: Totals = {}
    shards: Totals = {}
    for line in outer_lines(place):
        _add(totals, line)
        if apart is not False and line.term.slot in phases.GRADIENT_SHARDS:
            _add(shards, line)
    for line in _together(layer_lines(place, layers)):
        _add(totals, line, whole=True)
    count = len(place.layout)
    rows = {phase: np.broadcast_to(np.asarray(total, dtype=np.float64), count) for phase, total in totals.items()}
    nothing = np.zeros(count)
    alive = [phase for phase in phases.PHASES if phase in rows]
    peak = np.maximum.reduce([rows[phase] for phase in alive])
    pooled = peak
    if shards:
        rest = np.maximum.reduce([rows[phase] - shards.get(phase, 0.0) for phase in alive])
        held = np.maximum.reduce([np.broadcast_to(each, count) for each in shards.values()])
        pooled = np.where(apart, rest + held, peak)
    return np.stack([peak, pooled, rows.get(phases.HOST, nothing), rows.get(phases.NVME, nothing)])


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
