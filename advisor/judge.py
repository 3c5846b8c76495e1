"""Peaks of many layouts at once: the terms of ``estimate`` over columns of layouts, on the stages that can bind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.estimate import usable_bytes
from advisor.layers import unlike_stages
from advisor.lines import GroupValues, layer_values
from advisor.node_instants import LOAD, SAVE, bytes_beside
from advisor.placement import Place
from advisor.stage_figures import stage_figures
from advisor.types.case import Case
from advisor.types.columns import LAYER_COLUMNS, Columns


@dataclass(frozen=True)
class Judged:
    """Memory of many layouts.

    Attributes:
        peak_bytes, reserved_bytes: on each one's worst rank.
        usable_bytes: of a GPU.
        host_bytes, nvme_bytes: of a node, during a step.
        most_host_bytes: of a node at the instant that needs most, of those that count.
    """

    peak_bytes: Any
    reserved_bytes: Any
    usable_bytes: int
    host_bytes: Any
    nvme_bytes: Any
    most_host_bytes: Any


def judge(case: Case, columns: Columns) -> Judged:
    """Peak bytes of every layout in the columns, by the same terms as ``estimate``.

    Only stages that can bind are evaluated: of stages that are alike the first, which holds the most micro-batches.
    """
    found = np.zeros((6, len(columns)))
    for rows, part in columns.parts():
        found[:, rows] = _judge_part(case, part)
    peak, pooled, host, nvme, loading, saving = found
    reserved = np.round(pooled * (1 + case.training.fragmentation))
    offloaded = host * case.cluster.gpus_per_node
    return Judged(
        peak_bytes=peak,
        reserved_bytes=reserved,
        usable_bytes=usable_bytes(case),
        host_bytes=offloaded,
        nvme_bytes=nvme * case.cluster.gpus_per_node,
        most_host_bytes=np.maximum(loading, saving + offloaded),
    )


def _judge_part(case: Case, columns: Columns) -> Any:
    """Of each layout's worst stage, a row each: peak, pools, host, NVMe; of a node while loading and saving."""
    kinds, rows = columns.distinct(LAYER_COLUMNS)
    layers = layer_values(case, kinds)
    stages = unlike_stages(Place(case, columns).starts, case.model.moe_layers)
    return np.maximum.reduce([_figures(Place(case, columns, stage), layers, rows) for stage in stages])


def _figures(place: Place, layers: Mapping[Any, GroupValues], rows: Any) -> Any:
    count = len(place.layout)
    found = stage_figures(place, layers, count, rows)
    beside = [np.broadcast_to(bytes_beside(place, instant), count) for instant in (LOAD, SAVE)]
    return np.stack([found.peak, found.pooled, found.host, found.nvme, *beside])
