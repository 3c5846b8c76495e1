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

    Column = NDArray[np.float64] | Any

RECOMPUTE_POLICIES: tuple[str, ...] = get_args(a.RecomputePolicy)
OFFLOAD_TARGETS: tuple[str, ...] = get_args(a.OffloadTarget)


#: All of a layout that one layer's tensors and one pass over it depend on; the rest says how often each counts.
LAYER_COLUMNS = (
    "tensor_parallel", "sequence_parallel", "context_parallel", "expert_parallel", "expert_tensor_parallel",
    "micro_batch",
)  # fmt: skip


_PIPELINE = ("pipeline_parallel", "last_stage_layers")


#: Layouts evaluated at once: the working arrays of a part stay in the processor's cache.
PART_ROWS = 16_384


@dataclass(frozen=True)
class Columns:
    """Layouts as columns of equal length. ``recompute`` and the offloads hold indices into the tuples above.

    In a part (``parts``) what all layouts have in common is a plain number. ``last_stage_layers`` is 0 where layers are
    split as evenly as can be.
    """

    tensor_parallel: Column
    sequence_parallel: Column
    pipeline_parallel: Column
    last_stage_layers: Column
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

    @property
    def on_nvme(self) -> Any:
        """Which layouts keep something on NVMe."""
        nvme = OFFLOAD_TARGETS.index("nvme")
        return (self.offload_optimizer == nvme) | (self.offload_parameters == nvme)

    def take(self, rows: Any) -> Columns:
        """The rows that a mask, a slice or an index array selects."""
        return Columns(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    def parts(self, most: int = PART_ROWS) -> Iterator[tuple[Any, Columns]]:
        """Parts of at most so many layouts with the same pipeline and, where there are many, the same recompute.

        What all layouts of a part have in common is a plain number in it, stages and their layers among that, so that
        most of the arithmetic is plain too. Yields each part's rows and the part.
        """
        import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

        for pipeline in _alike(self.distinct(_PIPELINE)[1]):
            few = len(pipeline) <= most
            for alike in [pipeline] if few else [pipeline[rows] for rows in _alike(self.recompute[pipeline])]:
                for rows in np.array_split(alike, -(-len(alike) // most)):
                    yield rows, _plain(self.take(rows))

    def distinct(self, names: tuple[str, ...]) -> tuple[Any, Any]:
        """The combinations that occur in these columns, and each row's place among them.

        Returns:
            an object with these columns and no others, a row a combination; for each layout the index of its row.
        """
        import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

        held = {name: getattr(self, name) for name in names}
        varying = {name: column for name, column in held.items() if isinstance(column, np.ndarray)}
        key = np.zeros(len(self))
        for column in varying.values():
            key = key * (column.max(initial=0) + 1) + column  # whole numbers, far below 2**53 together
        _, first, places = np.unique(key, return_index=True, return_inverse=True)
        return SimpleNamespace(**held | {name: column[first] for name, column in varying.items()}), places

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


def _plain(columns: Columns) -> Columns:
    """The same layouts; a column of equal values becomes a plain number, but for the one that tells their count."""
    common = {
        field.name: _number(column[0])
        for field in fields(columns)
        if field.name != "tensor_parallel" and (column := getattr(columns, field.name)).min() == column.max()
    }
    return replace(columns, **common)


def _alike(values: Column) -> Iterator[Any]:
    """The rows of each value that occurs."""
    import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

    for value in np.unique(values):
        yield np.flatnonzero(values == value)


def _number(value: Any) -> int | float:
    """A column's value as a plain number, whole where it is."""
    number = float(value)
    return int(number) if number.is_integer() else number
