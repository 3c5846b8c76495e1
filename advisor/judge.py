"""Peaks of many layouts at once: the terms of ``estimate`` over columns of layouts, on the stages that can bind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.estimate import usable_bytes
from advisor.lines import GroupValues, layer_values
from advisor.placement import Place
from advisor.stage_figures import stage_figures
from advisor.types.case import Case
from advisor.types.columns import LAYER_COLUMNS, Columns

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
    found = np.zeros((4, len(columns)))
    for rows, part in columns.by_pipeline(CHUNK_ROWS):
        found[:, rows] = _judge_part(case, part)
    peak, pooled, host, nvme = found
    reserved = np.round(pooled * (1 + case.training.fragmentation))
    ranks = case.cluster.gpus_per_node
    return Judged(peak, reserved, usable_bytes(case), host * ranks, nvme * ranks)


def _judge_part(case: Case, columns: Columns) -> Any:
    """Peak, pools, host and NVMe bytes of each layout's worst stage, a row each."""
    kinds, rows = columns.distinct(LAYER_COLUMNS)
    layers = layer_values(case, kinds)
    stages = _binding_stages(case, columns.pipeline_parallel)
    return np.maximum.reduce([_figures(Place(case, columns, stage), layers, rows) for stage in stages])


def _figures(place: Place, layers: Mapping[Any, GroupValues], rows: Any) -> Any:
    found = stage_figures(place, layers, len(place.layout), rows)
    return np.stack([found.peak, found.pooled, found.host, found.nvme])


def _binding_stages(case: Case, pp: int) -> list[int]:
    """Stages among which the highest peak lies.

    Later stages hold fewer micro-batches, so of stages with equal layers the first binds: stage 0 (embedding), stage
    1, the first with a layer more than the others, the first whose layers all route, and the last (head).
    """
    last = pp - 1
    fuller = min(last - case.model.layers % pp, last)
    stages = {0, min(1, last), fuller, last}
    if case.model.moe_layers and case.model.moe_layers[0] > 0:
        per_stage = max(case.model.layers // pp, 1)
        routing = min(-(-case.model.moe_layers[0] // per_stage), last)
        stages |= {routing, max(routing, fuller)}
    return sorted(stages)
