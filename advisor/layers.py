"""A model's layers as memory sees them: groups that keep the same tensors, what is trained, running sums."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from advisor.architecture.parameters import layer_parameters
from advisor.types.architecture import ModelArchitecture
from advisor.types.case import Case


@cache
def even_as_possible(layers: int, stages: int, last: int = 0) -> tuple[int, ...]:
    """Layers of each stage. What does not divide goes to the stages before the last one.

    Those hold the fewest micro-batches in flight, and no head. ``last`` asks for a last stage of so many layers.
    """
    last = last or layers // stages
    base, longer = divmod(layers - last, max(stages - 1, 1))
    before = tuple(base + (stage >= stages - 1 - longer) for stage in range(stages - 1))
    return (*before, layers - sum(before))


@cache
def stage_starts(layers: int, stages: int, last: int, given: tuple[int, ...]) -> tuple[int, ...]:
    """Index of each stage's first layer, and of the end: of a given split over so many stages, or of an even one."""
    return running_sums(given if len(given) == stages else even_as_possible(layers, stages, last))


@cache
def unlike_stages(starts: tuple[int, ...], moe_layers: tuple[int, ...]) -> tuple[int, ...]:
    """Both ends, and of stages with as many layers of each kind the first, which holds the most micro-batches."""
    return tuple(sorted({0, len(starts) - 2, *_first_of_each_kind(starts, moe_layers).values()}))


@cache
def longest_stages(starts: tuple[int, ...], moe_layers: tuple[int, ...]) -> tuple[int, ...]:
    """Both ends, and stages than which none has more layers of each kind."""
    first_of = _first_of_each_kind(starts, moe_layers)
    longest = [
        stage
        for (dense, routed), stage in first_of.items()
        if not any(kind != (dense, routed) and kind[0] >= dense and kind[1] >= routed for kind in first_of)
    ]
    return tuple(sorted({0, len(starts) - 2, *longest}))


def _first_of_each_kind(starts: tuple[int, ...], moe_layers: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """The first stage with so many dense and so many routed layers."""
    first_of: dict[tuple[int, int], int] = {}
    for stage, (start, end) in enumerate(pairwise(starts)):
        routed = bisect_left(moe_layers, end) - bisect_left(moe_layers, start)
        first_of.setdefault((end - start - routed, routed), stage)
    return first_of


@dataclass(frozen=True)
class LayerGroup:
    """Layers that keep the same tensors: same feed-forward kind, same attention mask, same part in training."""

    moe: bool
    masked: bool
    trained: bool
    entry: bool = False  # its lowest layer reads what needs no gradient

    @property
    def choices(self) -> dict[str, str]:
        """The group's part in the choice of terms."""
        return {"ffn_kind": "moe" if self.moe else "dense"}


@dataclass(frozen=True)
class TrainedPart:
    """Which layers and outer parts are trained, and the lowest place that a gradient must reach."""

    layers: frozenset[int]
    embedding: bool
    head: bool
    lowest: int  # layers below it keep nothing for the backward pass
    positions: bool = False  # the position table is trained, with or without the token table

    @property
    def below_layers(self) -> bool:
        """Something below layer 0 is trained, so every layer's input needs a gradient."""
        return self.embedding or self.positions


def trained_part(case: Case) -> TrainedPart:
    """Read ``trainable`` and the method: adapters sit in every layer, whose own weights are frozen."""
    training = case.training
    if training.method in {"lora", "dora", "qlora"}:
        saved = set(training.lora_modules_to_save)
        return TrainedPart(frozenset(), bool(saved & {"embed_tokens"}), bool(saved & {"lm_head"}), 0)
    return _trained_part(training.trainable, case.model.layers)


@lru_cache(maxsize=256)
def _trained_part(trainable: str, layers: int) -> TrainedPart:
    parts = trainable.split(",")
    if "all" in parts:
        return TrainedPart(frozenset(range(layers)), embedding=True, head=True, lowest=0)
    chosen = frozenset(index for part in parts for index in _chosen_layers(part, layers))
    bottom = any(part.startswith("bottom:") for part in parts)
    table = bottom or "embedding" in parts
    reaches_table = table or "positions" in parts
    head = "head" in parts or any(part.startswith("top:") for part in parts)
    lowest = 0 if reaches_table else min(chosen, default=layers)
    return TrainedPart(chosen, embedding=table, head=head, lowest=lowest, positions=reaches_table)


def _chosen_layers(part: str, layers: int) -> range:
    kind, _, count = part.partition(":")
    number = min(int(count), layers) if count else 0
    return range(layers - number, layers) if kind == "top" else range(number if kind == "bottom" else 0)


def running_sums(values: Iterable[int]) -> tuple[int, ...]:
    """0, then the sum of the first value, then of the first two, and so on."""
    totals = [0]
    for value in values:
        totals.append(totals[-1] + value)
    return tuple(totals)


@dataclass(frozen=True)
class ModelTables:
    """Running sums over a model's layers, so that a stage's share is a difference of two look-ups."""

    divided: tuple[int, ...]
    replicated: tuple[int, ...]
    experts: tuple[int, ...]
    divided_trained: tuple[int, ...]
    replicated_trained: tuple[int, ...]
    experts_trained: tuple[int, ...]
    groups: tuple[tuple[LayerGroup, tuple[int, ...]], ...]
    unit_divided: int
    unit_replicated: int
    unit_experts: int


@lru_cache(maxsize=512)
def model_tables(
    model: ModelArchitecture, trained: TrainedPart, adapters: bool, masked_everywhere: bool, masked_sliding: bool
) -> ModelTables:
    """The running sums of one model under one choice of trained layers."""
    layers = [layer_parameters(model, index) for index in range(model.layers)]
    divided = [p.attention_sharded + p.ffn_sharded + p.shared_experts_sharded for p in layers]
    replicated = [p.replicated for p in layers]
    experts = [p.experts for p in layers]
    is_trained = [index in trained.layers for index in range(model.layers)]
    moe, sliding = set(model.moe_layers), set(model.sliding_layers if masked_sliding else ())
    kinds: dict[LayerGroup, list[int]] = {}
    for index in range(model.layers):
        if index < trained.lowest:
            continue
        entry = index == trained.lowest and not trained.below_layers
        trains = adapters or is_trained[index]
        group = LayerGroup(index in moe, masked_everywhere or index in sliding, trains, entry)
        kinds.setdefault(group, [0] * model.layers)[index] = 1
    heaviest = max(range(model.layers), key=lambda i: divided[i] + replicated[i] + experts[i])
    return ModelTables(
        divided=running_sums(divided),
        replicated=running_sums(replicated),
        experts=running_sums(experts),
        divided_trained=running_sums(v * t for v, t in zip(divided, is_trained, strict=True)),
        replicated_trained=running_sums(v * t for v, t in zip(replicated, is_trained, strict=True)),
        experts_trained=running_sums(v * t for v, t in zip(experts, is_trained, strict=True)),
        groups=tuple((group, running_sums(flags)) for group, flags in kinds.items()),
        unit_divided=divided[heaviest],
        unit_replicated=replicated[heaviest],
        unit_experts=experts[heaviest],
    )
