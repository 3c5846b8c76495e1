"""Layouts that are never searched, only compared with: plain data parallelism, and one lever moved on its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.search.choose import completed
from advisor.types.case import Case, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The values of levers that are no numbers, from the least to the most.
LADDERS: Mapping[str, tuple[Any, ...]] = {
    "zero_stage": (0, 1, 2, 3),
    "recompute": ("none", "near_free", "full"),
    "offload_fraction": (0.0, 0.25, 0.5, 0.75, 1.0),
    "offload_activations": ("none", "cpu"),
    "offload_parameters": ("none", "cpu", "nvme"),
}
_MODEL_PARALLEL = ("tensor_parallel", "pipeline_parallel", "context_parallel")


def plain_data_parallel(case: Case) -> Layout:
    """Every GPU with a whole model and its own samples: where the walk starts."""
    return batched(
        case, Layout(data_parallel_shard=case.cluster.gpus, reshard_after_forward=case.layout.reshard_after_forward)
    )


def moved(case: Case, layout: Layout, changes: Mapping[str, Any]) -> Layout | None:
    """The layout with some levers changed and data parallelism taking the GPUs that are left; None if none are."""
    wanted = layout.model_copy(update=dict(changes))
    model_ranks = wanted.tensor_parallel * wanted.pipeline_parallel * wanted.context_parallel
    ranks = model_ranks * wanted.data_parallel_replicate
    if case.cluster.gpus % ranks:
        return None
    return batched(case, wanted.model_copy(update={"data_parallel_shard": case.cluster.gpus // ranks}))


def batched(case: Case, layout: Layout) -> Layout:
    """The layout with the accumulation that keeps the global batch; at least one micro-batch."""
    if "gradient_accumulation" not in case.free or not case.training.global_batch:
        return layout
    steps = max(case.training.global_batch // (layout.micro_batch * layout.data_parallel), 1)
    return layout.model_copy(update={"gradient_accumulation": steps})


def notches(lever: str, layout: Layout) -> tuple[Any | None, Any | None]:
    """The next lower and the next higher value of a lever; None at an end."""
    value = getattr(layout, lever)
    if lever in LADDERS:
        return _on_ladder(LADDERS[lever], value)
    return (value // 2 if value > 1 else None), value * 2


def _on_ladder(ladder: tuple[Any, ...], value: Any) -> tuple[Any | None, Any | None]:
    if value == "blocks":
        return "near_free", "full"
    if value not in ladder:
        return None, None
    place = ladder.index(value)
    return (ladder[place - 1] if place else None), (ladder[place + 1] if place + 1 < len(ladder) else None)


def alone(case: Case, layout: Layout, lever: str, value: Any) -> Layout | None:
    """The layout with one lever at another value, and only what that forces."""
    changes: dict[str, Any] = {lever: value}
    if lever == "tensor_parallel" and "sequence_parallel" in case.free:
        changes["sequence_parallel"] = value > 1
    if lever == "zero_stage" and "reshard_after_forward" in case.free:
        changes["reshard_after_forward"] = value != 2  # noqa: PLR2004 - stage 2 keeps gathered weights
    if lever == "pipeline_parallel":
        changes |= {"stage_layers": (), "virtual_stages": 1 if value == 1 else layout.virtual_stages}
    if lever == "offload_fraction" and value == 0:
        changes["offload_optimizer"] = "none"
    found = moved(case, layout, changes)
    if found is None or found.pipeline_parallel > case.model.layers:
        return None
    return completed(case, found, found.last_stage_layers)


def values_of(layout: Layout, levers: Iterable[str]) -> dict[str, Any]:
    """Some of a layout's fields by name."""
    return {lever: getattr(layout, lever) for lever in levers}
