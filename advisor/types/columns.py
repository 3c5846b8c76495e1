"""Many layouts at once: the fields of a Layout as numpy columns, so that one formula serves a case and a search.

A column is float64; names are those of ``Layout``. Choices become small whole numbers (their place in the tuples
below), so that everything that varies in a search is a number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, get_args

from advisor.types import arguments as a

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Column = NDArray[np.float64]

RECOMPUTE_POLICIES: tuple[str, ...] = get_args(a.RecomputePolicy)
OFFLOAD_TARGETS: tuple[str, ...] = get_args(a.OffloadTarget)


#: All of a layout that one layer's tensors and one pass over it depend on; the rest says how often each counts.
LAYER_COLUMNS = (
    "tensor_parallel", "sequence_parallel", "context_parallel", "expert_parallel", "expert_tensor_parallel",
    "micro_batch",
)  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """Layouts as columns of equal length. ``recompute`` and the offloads hold indices into the tuples above."""

    tensor_parallel: Column
    sequence_parallel: Column
    pipeline_parallel: Any  # a column, or a plain number where all have the same
    last_stage_layers: Any  # likewise; 0 where layers are split as evenly as can be
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

    def by_pipeline(self, most: int) -> Iterator[tuple[Any, Columns]]:
        """Parts of at most so many layouts with the same pipeline, which is plain numbers in them.

        Stages, and the layers on each, are then plain numbers too. Yields each part's rows and the part.
        """
        import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

        pipelines, places = self.distinct(("pipeline_parallel", "last_stage_layers"))
        for place, (stages, last) in enumerate(zip(*vars(pipelines).values(), strict=True)):
            alike = np.flatnonzero(places == place)
            for start in range(0, len(alike), most):
                rows = alike[start : start + most]
                yield rows, replace(self.take(rows), pipeline_parallel=int(stages), last_stage_layers=int(last))

    def distinct(self, names: tuple[str, ...]) -> tuple[Any, Any]:
        """The combinations that occur in these columns, and each row's place among them.

        Returns:
            an object with these columns and no others, a row a combination; for each layout the index of its row.
        """
        import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

        key = np.zeros(len(self))
        for name in names:
            column = getattr(self, name)
            key = key * (column.max(initial=0) + 1) + column  # whole numbers, far below 2**53 together
        _, first, places = np.unique(key, return_index=True, return_inverse=True)
        return SimpleNamespace(**{name: getattr(self, name)[first] for name in names}), places

    def row(self, index: int) -> Mapping[str, Any]:
        """One layout's fields by name, in the types that ``Layout`` takes; its split over stages is left out."""
        names = [field.name for field in fields(self) if field.name != "last_stage_layers"]
        values: dict[str, Any] = {name: float(getattr(self, name)[index]) for name in names}
        whole: dict[str, Any] = {name: int(value) for name, value in values.items() if name != "offload_fraction"}
        whole["recompute"] = RECOMPUTE_POLICIES[whole["recompute"]]
        for name in ("offload_optimizer", "offload_parameters", "offload_activations"):
            whole[name] = OFFLOAD_TARGETS[whole[name]]
        for name in ("sequence_parallel", "reshard_after_forward"):
            whole[name] = bool(whole[name])
        return {**whole, "offload_fraction": values["offload_fraction"]}
