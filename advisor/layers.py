"""A model's layers as memory sees them: groups that keep the same tensors, what is trained, running sums."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from advisor.architecture.parameters import layer_parameters
from advisor.types.architecture import ModelArchitecture
from advisor.types.case import Case


def even_as_possible(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each stage. What does not divide goes to the stages before the last one.

    Those hold the fewest micro-batches in flight, and no head.
    """
    base, extra = divmod(layers, stages)
    return tuple(base + (stages - 1 - extra <= stage < stages - 1) for stage in range(stages))


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
    layers = case.model.layers
    if case.training.method in {"lora", "dora", "qlora"}:
        saved = set(case.training.lora_modules_to_save)
        return TrainedPart(frozenset(), bool(saved & {"embed_tokens"}), bool(saved & {"lm_head"}), 0)
    parts = case.training.trainable.split(",")
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
