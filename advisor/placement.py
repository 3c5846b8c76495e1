"""What one rank holds of its pipeline stage, and who shares it.

Each quantity is written once, for one layout and for columns of layouts: ``place.layout`` is a ``Layout`` or a
``Columns``, and arithmetic, ``at_least`` and table look-ups work on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from advisor.architecture.parameters import outer_parameters
from advisor.columnwise import Number, at_least, at_most, choose, pick
from advisor.layers import LayerGroup, ModelTables, TrainedPart, model_tables, trained_part
from advisor.pipeline import Stage

MEGATRON = ("megatron", "megatron_fsdp")
#: Frameworks whose tensor-parallel plans leave the embedding table whole on every rank.
WHOLE_EMBEDDING = ("fsdp1", "fsdp2", "ddp", "single")

#: Stands for the layers where no formula asks which ones.
ANY_GROUP = LayerGroup(moe=False, masked=False, trained=True)


@dataclass(frozen=True)
class Place(Stage):
    """One rank of a pipeline stage, and a group of its layers."""

    group: LayerGroup = ANY_GROUP

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
    def checkpoint_ranks(self) -> Number:
        """Ranks that split the input that a recomputed layer keeps."""
        return self.layout.tensor_parallel if self.case.layout.distribute_checkpoints else self.sequence_ranks

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
        training = self.case.training
        reaches = training.sequence_length >= self.model.attention.sliding_window
        return model_tables(self.model, self.trained, self.adapters, training.attention == "sdpa_masked", reaches)

    @cached_property
    def predictors(self) -> Number:
        """Multi-token-prediction modules on the stage: Megatron builds them behind its last layers."""
        return self.model.mtp_layers * self.is_last if self.case.training.framework in MEGATRON else 0

    def span(self, table: Sequence[int]) -> Number:
        """The stage's share of a quantity kept as running sums over the layers; a predictor is like the last layer."""
        layers = pick(table, self.end_layer) - pick(table, self.first_layer)
        return layers + self.predictors * (table[-1] - table[-2])

    # --- the stage's parameters ------------------------------------------------------------------------------

    @cached_property
    def whole_embedding(self) -> bool:
        """No rank splits the embedding table: Transformers' plans, which DeepSpeed's AutoTP follows, leave it out."""
        training = self.case.training
        autotp = training.framework == "deepspeed" and training.implementation == "reference"
        return autotp or training.framework in WHOLE_EMBEDDING

    @cached_property
    def embeddings(self) -> Number:
        """Embedding tables on the stage: the model's own, and a copy where a pipeline ends in a reader of it.

        That is a tied head, or Megatron's predictors; in DualPipe these share the table of their rank's first stage
        (DeepSeek-V3 report, §3.2.3).
        """
        predicting = 0 if self.schedule == "dualpipe" else at_most(self.predictors, 1)
        reader = self.is_last if self.model.tied_embeddings else predicting
        return self.is_first + choose(self.layout.pipeline_parallel > 1, reader, 0)

    @cached_property
    def outer_divided(self) -> Number:
        """Embedding and head elements on the stage that tensor parallel divides."""
        outer = outer_parameters(self.model)
        table = 0 if self.whole_embedding else outer.embedding
        return table * self.embeddings + outer.head * self.is_last

    @cached_property
    def cast_elements(self) -> Number:
        """Elements of the matrices that are multiplied: the stage's without the embedding table, head included."""
        head = self.model.vocab * self.model.hidden
        return self.span(self.tables.divided) + head * self.is_last

    @cached_property
    def joints(self) -> Number:
        """Elements of the matrices that join a predictor's two inputs."""
        return self.predictors * 2 * self.model.hidden**2

    @cached_property
    def outer_replicated(self) -> Number:
        """Final norm, learned positions, vision tower, and the embedding table where no rank splits it: held whole."""
        outer = outer_parameters(self.model)
        table = outer.embedding if self.whole_embedding else 0
        first = outer.positions + outer.embedding_norm + outer.vision
        return table * self.embeddings + first * self.is_first + outer.final_norm * self.is_last

    @cached_property
    def divided(self) -> Number:
        """Elements that tensor parallel divides."""
        return self.span(self.tables.divided) + self.outer_divided + self.joints

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
        return self.span(self.tables.divided_trained) + self.joints * (self.trained.head and not self.adapters)

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
        """Trained elements of head, final norm and what stands beside them. A tied head makes the shared gradient.

        Tensor parallel divides them, so a shared table that is whole counts once for each of its ranks.
        """
        outer = outer_parameters(self.model)
        whole = self.layout.tensor_parallel if self.whole_embedding else 1
        head = outer.embedding * whole if self.model.tied_embeddings else outer.head
        return (head + outer.final_norm) * self.is_last * self.trained.head

    @cached_property
    def embedding_trained(self) -> Number:
        """Trained elements of embedding tables and what feeds them, on one rank; none of a table that a head shares."""
        outer = outer_parameters(self.model)
        shared = self.is_last if self.model.tied_embeddings and self.trained.head else 0
        ranks = 1 if self.whole_embedding else self.layout.tensor_parallel
        first = (outer.positions + outer.embedding_norm + outer.vision) * self.is_first
        return (outer.embedding / ranks * (self.embeddings - shared) + first) * self.trained.embedding

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
        """Elements of the largest tensor that is stepped on one rank, after tensor, expert and ZeRO division."""
        shard = self.divisor(self.case.training.recipe.weights_divided_from, self.shard_ranks)
        if self.case.training.optimizer.matrices_alone:
            return self.largest_matrix / shard
        table = self.model.vocab * self.model.hidden / (1 if self.whole_embedding else self.layout.tensor_parallel)
        experts = self.model.experts
        if experts is None:
            return table / shard
        gate_up = 2 * experts.hidden * self.model.hidden * experts.count
        return at_least(table, gate_up / (self.layout.expert_parallel * self.layout.expert_tensor_parallel)) / shard

    @cached_property
    def largest_matrix(self) -> Number:
        """Elements of the largest matrix of a layer on one rank."""
        widths = [self.model.attention.heads * self.model.attention.head_dim]
        widths += [self.model.ffn.hidden * (2 if self.model.ffn.fused_gate_up else 1)] if self.model.ffn else []
        widths += [self.model.experts.hidden] if self.model.experts else []
        return self.model.hidden * max(widths) / self.layout.tensor_parallel

    @cached_property
    def root_unit(self) -> Number:
        """Elements of the unit that holds what is outside the layers."""
        return self.outer_divided / self.layout.tensor_parallel + self.outer_replicated
