"""What one rank holds: its pipeline stage's layers and parameters, its micro-batches in flight, and who shares them.

Each quantity is written once, for one layout and for columns of layouts: ``place.layout`` is a ``Layout`` or a
``Columns``, and arithmetic, ``at_least`` and table look-ups work on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from advisor.architecture.parameters import layer_parameters, outer_parameters
from advisor.types.architecture import ModelArchitecture
from advisor.types.case import Case

Number = Any  # an int, a float, or a numpy column of float64


def pick(table: Sequence[int], index: Number) -> Number:
    """``table[index]`` for an int or a column of whole numbers."""
    if isinstance(index, int):
        return table[index]
    import numpy as np  # noqa: PLC0415 - only columns come this far

    return np.asarray(table, dtype=np.float64)[np.asarray(index, dtype=np.int64)]


def at_most(left: Number, right: Number) -> Number:
    """The smaller of two, for numbers and columns."""
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return min(left, right)
    import numpy as np  # noqa: PLC0415

    return np.minimum(left, right)


def at_least(left: Number, right: Number) -> Number:
    """The larger of two, for numbers and columns."""
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return max(left, right)
    import numpy as np  # noqa: PLC0415

    return np.maximum(left, right)


def choose(condition: Number, yes: Number, no: Number) -> Number:
    """``yes`` where the condition holds, else ``no``; for a bool and for columns."""
    if isinstance(condition, (bool, int)):
        return yes if condition else no
    import numpy as np  # noqa: PLC0415

    return np.where(condition, yes, no)


def whole_quotient(numerator: Number, denominator: Number) -> Number:
    """The quotient rounded down; ints stay ints."""
    return numerator // denominator


def rounded_up(numerator: Number, denominator: Number) -> Number:
    """The quotient rounded up; ints stay ints."""
    return -(-numerator // denominator)


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
    model: ModelArchitecture, trained: TrainedPart, adapters: bool, masked_everywhere: bool
) -> ModelTables:
    """The running sums of one model under one choice of trained layers."""
    layers = [layer_parameters(model, index) for index in range(model.layers)]
    divided = [p.attention_sharded + p.ffn_sharded + p.shared_experts_sharded for p in layers]
    replicated = [p.replicated for p in layers]
    experts = [p.experts for p in layers]
    is_trained = [index in trained.layers for index in range(model.layers)]
    moe, sliding = set(model.moe_layers), set(model.sliding_layers)
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


@dataclass(frozen=True)
class Place:
    """One rank: a case, a layout or columns of layouts, a pipeline stage, and a group of its layers."""

    case: Case
    layout: Any
    stage: Number = 0
    group: LayerGroup = LayerGroup(moe=False, masked=False, trained=True)

    @property
    def model(self) -> ModelArchitecture:
        """The model's shapes."""
        return self.case.model

    # --- who shares what -------------------------------------------------------------------------------------

    @cached_property
    def tokens(self) -> Number:
        """Tokens of one micro-batch on one rank."""
        return self.case.training.sequence_length * self.layout.micro_batch / self.layout.context_parallel

    @cached_property
    def sequence_ranks(self) -> Number:
        """Ranks that split the sequence between the matrices (Megatron's sequence parallel)."""
        return choose(self.layout.sequence_parallel, self.layout.tensor_parallel, 1)

    @cached_property
    def world(self) -> Number:
        """GPUs of the layout."""
        layout = self.layout
        return layout.tensor_parallel * layout.pipeline_parallel * layout.context_parallel * layout.data_parallel

    @cached_property
    def shard_ranks(self) -> Number:
        """Ranks that share the dense states: the shard group, which context parallel joins."""
        return self.layout.data_parallel_shard * self.layout.context_parallel

    @cached_property
    def expert_data_ranks(self) -> Number:
        """Ranks that hold the same experts: world / (pp · ep · etp)."""
        layout = self.layout
        return self.world / (layout.pipeline_parallel * layout.expert_parallel * layout.expert_tensor_parallel)

    @cached_property
    def expert_shard_ranks(self) -> Number:
        """Ranks that share the experts' states inside one replica."""
        return at_least(self.expert_data_ranks / self.layout.data_parallel_replicate, 1)

    def divisor(self, from_stage: int, ranks: Number) -> Number:
        """``ranks`` where the ZeRO stage reaches ``from_stage``, else 1."""
        return choose(self.layout.zero_stage >= from_stage, ranks, 1)

    # --- the stage's layers ----------------------------------------------------------------------------------

    @cached_property
    def adapters(self) -> bool:
        """Adapters are trained instead of the weights."""
        return self.case.training.method in {"lora", "dora", "qlora"}

    @cached_property
    def trained(self) -> TrainedPart:
        """Which parts are trained."""
        return trained_part(self.case)

    @cached_property
    def tables(self) -> ModelTables:
        """The model's running sums."""
        return model_tables(self.model, self.trained, self.adapters, self.case.training.attention == "sdpa_masked")

    @cached_property
    def first_layer(self) -> Number:
        """Index of the stage's first layer."""
        if getattr(self.layout, "stage_layers", ()):
            return sum(self.layout.stage_layers[: self.stage])
        pp = self.layout.pipeline_parallel
        base, extra = whole_quotient(self.model.layers, pp), self.model.layers % pp
        return self.stage * base + at_most(at_least(self.stage - (pp - 1 - extra), 0), extra)

    @cached_property
    def end_layer(self) -> Number:
        """Index after the stage's last layer; see ``even_as_possible`` for layers that do not divide."""
        if getattr(self.layout, "stage_layers", ()):
            return self.first_layer + self.layout.stage_layers[self.stage]
        pp = self.layout.pipeline_parallel
        base, extra = whole_quotient(self.model.layers, pp), self.model.layers % pp
        after = self.stage + 1
        return after * base + at_most(at_least(after - (pp - 1 - extra), 0), extra)

    @property
    def layers(self) -> Number:
        """Layers of the stage."""
        return self.end_layer - self.first_layer

    @cached_property
    def is_first(self) -> Number:
        """1 on the first stage."""
        return choose(self.stage == 0, 1, 0)

    @cached_property
    def is_last(self) -> Number:
        """1 on the last stage."""
        return choose(self.stage == self.layout.pipeline_parallel - 1, 1, 0)

    def span(self, table: Sequence[int]) -> Number:
        """The stage's share of a quantity kept as running sums over the layers."""
        return pick(table, self.end_layer) - pick(table, self.first_layer)

    # --- the stage's parameters ------------------------------------------------------------------------------

    @cached_property
    def outer_divided(self) -> Number:
        """Embedding and head elements on the stage. A tied head is a second copy on its own stage."""
        outer = outer_parameters(self.model)
        tied_copy = choose(self.layout.pipeline_parallel > 1, outer.embedding, 0) if self.model.tied_embeddings else 0
        head = outer.head + tied_copy
        return outer.embedding * self.is_first + head * self.is_last

    @cached_property
    def cast_elements(self) -> Number:
        """Elements of the matrices that are multiplied: the stage's without the embedding table, head included."""
        head = self.model.vocab * self.model.hidden
        return self.span(self.tables.divided) + head * self.is_last

    @cached_property
    def outer_replicated(self) -> Number:
        """Final norm, learned positions, vision tower: held whole."""
        outer = outer_parameters(self.model)
        first = outer.positions + outer.embedding_norm + outer.vision
        return first * self.is_first + outer.final_norm * self.is_last

    @cached_property
    def divided(self) -> Number:
        """Elements that tensor parallel divides."""
        return self.span(self.tables.divided) + self.outer_divided

    @cached_property
    def replicated(self) -> Number:
        """Elements that every tensor-parallel rank holds whole."""
        return self.span(self.tables.replicated) + self.outer_replicated

    @cached_property
    def experts(self) -> Number:
        """Elements of the routed experts."""
        return self.span(self.tables.experts)

    @cached_property
    def divided_trained(self) -> Number:
        """Trained layer elements that tensor parallel divides."""
        return self.span(self.tables.divided_trained)

    @cached_property
    def replicated_trained(self) -> Number:
        """Trained layer elements that every tensor-parallel rank holds whole."""
        return self.span(self.tables.replicated_trained)

    @cached_property
    def experts_trained(self) -> Number:
        """Trained elements of the routed experts."""
        return self.span(self.tables.experts_trained)

    @cached_property
    def head_trained(self) -> Number:
        """Trained elements of head, final norm and what stands beside them. A tied head makes the shared gradient."""
        outer = outer_parameters(self.model)
        shared = outer.embedding if self.model.tied_embeddings else outer.head
        return (shared + outer.final_norm) * self.is_last * self.trained.head

    @cached_property
    def embedding_trained(self) -> Number:
        """Trained elements of the embedding and what feeds it; none of its own where the head's gradient is shared."""
        outer = outer_parameters(self.model)
        shared = choose(self.is_last == 1, 1, 0) if self.model.tied_embeddings and self.trained.head else 0
        embedding = outer.embedding * (1 - shared)
        return (
            (embedding + outer.positions + outer.embedding_norm + outer.vision) * self.is_first * self.trained.embedding
        )

    @cached_property
    def unit(self) -> Number:
        """Elements of the largest sharded unit: one layer, after tensor and expert parallel."""
        layout, tables = self.layout, self.tables
        experts = tables.unit_experts / (layout.expert_parallel * layout.expert_tensor_parallel)
        return tables.unit_divided / layout.tensor_parallel + tables.unit_replicated + experts

    @cached_property
    def unit_trained(self) -> Number:
        """Trained elements of the largest sharded unit."""
        if self.adapters:
            return self.case.adapter_parameters / self.model.layers
        return self.unit if self.trained.layers else 0

    @cached_property
    def unit_trained_early(self) -> Number:
        """Trained elements of the largest unit whose gradient exists while its feed-forward is differentiated.

        Of a dense layer that is the down projection; the experts' gradients are made while their tensors are alive.
        """
        if self.adapters or self.tables.unit_experts or self.model.ffn is None:
            return self.unit_trained
        down = self.model.hidden * self.model.ffn.hidden / self.layout.tensor_parallel
        return at_most(down, self.unit_trained)

    @cached_property
    def largest_tensor(self) -> Number:
        """Elements of the largest tensor on one rank, after tensor, expert and ZeRO division."""
        table = self.model.vocab * self.model.hidden / self.layout.tensor_parallel
        shard = self.divisor(self.case.training.recipe.weights_divided_from, self.shard_ranks)
        experts = self.model.experts
        if experts is None:
            return table / shard
        gate_up = 2 * experts.hidden * self.model.hidden * experts.count
        return at_least(table, gate_up / (self.layout.expert_parallel * self.layout.expert_tensor_parallel)) / shard

    @cached_property
    def root_unit(self) -> Number:
        """Elements of the unit that holds what is outside the layers."""
        return self.outer_divided / self.layout.tensor_parallel + self.outer_replicated

    # --- micro-batches in flight -----------------------------------------------------------------------------

    @cached_property
    def micro_batches(self) -> Number:
        """Micro-batches a stage works through in one optimizer step."""
        return self.layout.gradient_accumulation

    @cached_property
    def in_flight(self) -> Number:
        """Micro-batches whose activations are alive at once, in units of the stage's layers.

        1F1B keeps min(m, pp - stage); interleaving adds (pp - 1) / (pp · v) of the model (Narayanan 2021, §2.2).
        """
        layout = self.layout
        schedule = getattr(layout, "pipeline_schedule", "1f1b")
        pp, m = layout.pipeline_parallel, self.micro_batches
        if schedule == "gpipe":
            return m
        depth = {"zb_h2": 2 * pp - 1, "zb_v": pp, "dualpipe": pp + 1}.get(schedule)
        if depth is not None:
            return at_most(m, depth)
        plain = at_most(m, pp - self.stage)
        chunks = (2 * (pp - self.stage - 1) + (layout.virtual_stages - 1) * pp + 1) / layout.virtual_stages
        return choose(layout.virtual_stages > 1, at_most(m, chunks), plain)
