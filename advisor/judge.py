"""Peaks of many layouts at once: the terms of ``estimate`` over columns of layouts, on the stages that can bind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.estimate import usable_bytes
from advisor.layers import unlike_stages
from advisor.lines import GroupValues, layer_values
from advisor.placement import Place
from advisor.stage_figures import stage_figures
from advisor.types.case import Case
from advisor.types.columns import LAYER_COLUMNS, Columns


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

    Only stages that can bind are evaluated: of stages that are alike the first, which holds the most micro-batches.
    """
    found = np.zeros((4, len(columns)))
    for rows, part in columns.parts():
        found[:, rows] = _judge_part(case, part)
    peak, pooled, host, nvme = found
    reserved = np.round(pooled * (1 + case.training.fragmentation))
    ranks = case.cluster.gpus_per_node
    return Judged(peak, reserved, usable_bytes(case), host * ranks, nvme * ranks)


def _judge_part(case: Case, columns: Columns) -> Any:
    """Peak, pools, host and NVMe bytes of each layout's worst stage, a row each."""
    kinds, rows = columns.distinct(LAYER_COLUMNS)
    layers = layer_values(case, kinds)
    stages = unlike_stages(Place(case, columns).starts, case.model.moe_layers)
    return np.maximum.reduce([_figures(Place(case, columns, stage), layers, rows) for stage in stages])


def _figures(place: Place, layers: Mapping[Any, GroupValues], rows: Any) -> Any:
    found = stage_figures(place, layers, len(place.layout), rows)
    return np.stack([found.peak, found.pooled, found.host, found.nvme])
