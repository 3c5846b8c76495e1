"""Peaks of many layouts at once: the terms of ``estimate`` over columns of layouts, on the stages that can bind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from advisor.columnwise import at_least, at_most
from advisor.estimate import usable_bytes
from advisor.lines import GroupValues, layer_values
from advisor.placement import Place
from advisor.stage_figures import stage_figures
from advisor.types.case import Case
from advisor.types.columns import Columns

#: Rows evaluated at once: the working arrays of a chunk stay in the processor's cache.
CHUNK_ROWS = 8192


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
    worst = _figures(Place(case, columns, stages[0]), layers)
    for index, stage in enumerate(stages[1:], start=1):
        rows = np.flatnonzero(np.all([stage != earlier for earlier in stages[:index]], axis=0))
        if len(rows):
            place = Place(case, columns.take(rows), stage[rows])
            worst[:, rows] = np.maximum(worst[:, rows], _figures(place, _taken(layers, rows)))
    return worst


def _figures(place: Place, layers: Mapping[Any, GroupValues]) -> Any:
    found = stage_figures(place, layers, len(place.layout))
    return np.stack([found.peak, found.pooled, found.host, found.nvme])


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
