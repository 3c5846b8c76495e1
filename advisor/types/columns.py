"""Many layouts at once: the fields of a Layout as numpy columns, so that one formula serves a case and a search.

A column is float64; names are those of ``Layout``. Choices become small whole numbers (their place in the tuples
below), so that everything that varies in a search is a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, get_args

from advisor.types import arguments as a

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

RECOMPUTE_POLICIES: tuple[str, ...] = get_args(a.RecomputePolicy)
OFFLOAD_TARGETS: tuple[str, ...] = get_args(a.OffloadTarget)


@dataclass(frozen=True)
class Columns:
    """Layouts as columns of equal length. ``recompute`` and the offloads hold indices into the tuples above."""

    tensor_parallel: Column
    sequence_parallel: Column
    pipeline_parallel: Column
    virtual_stages: Column
    context_parallel: Column
    expert_parallel: Column
    expert_tensor_parallel: Column
    data_parallel_replicate: Column
    data_parallel_shard: Column
    zero_stage: Column
    reshard_after_forward: Column
    micro_batch: Column
    gradient_accumulation: Column
    recompute: Column
    recompute_layers: Column
    offload_optimizer: Column
    offload_parameters: Column
    offload_activations: Column
    offload_fraction: Column

    def __len__(self) -> int:
        return len(self.tensor_parallel)

    @property
    def data_parallel(self) -> Column:
        """Replicas times shards."""
        return self.data_parallel_replicate * self.data_parallel_shard

    def take(self, rows: Any) -> Columns:
        """The rows that a mask, a slice or an index array selects."""
        return Columns(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def row(self, index: int) -> Mapping[str, Any]:
        """One layout's fields by name, in the types that ``Layout`` takes."""
        values: dict[str, Any] = {f.name: float(getattr(self, f.name)[index]) for f in fields(self)}
        whole: dict[str, Any] = {name: int(value) for name, value in values.items() if name != "offload_fraction"}
        whole["recompute"] = RECOMPUTE_POLICIES[whole["recompute"]]
        for name in ("offload_optimizer", "offload_parameters", "offload_activations"):
            whole[name] = OFFLOAD_TARGETS[whole[name]]
        for name in ("sequence_parallel", "reshard_after_forward"):
            whole[name] = bool(whole[name])
        return {**whole, "offload_fraction": values["offload_fraction"]}
