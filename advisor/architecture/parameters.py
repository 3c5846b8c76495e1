"""Exact parameter counts: sums over the matrices and vectors of each layer, and of what stands around the layers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from advisor.architecture.matrices import Matrix, matrices
from advisor.types import ModelArchitecture, ParameterCount


@dataclass(frozen=True)
class LayerParameters:
    """Parameters of one layer by how model parallelism treats them.

    Attributes:
        attention_sharded: attention matrices that tensor parallelism divides, their divided biases, sinks.
        ffn_sharded: the dense feed-forward's matrices and divided biases; 0 in a layer that routes.
        shared_experts_sharded: the same of the shared experts.
        replicated: norms, q/k norms, router, indexer, latent down-projections, shared gate, row-linear biases.
        experts: all routed experts, biases included; expert parallelism divides them.
        expert_biases: the part of ``experts`` that is bias vectors.
    """

    attention_sharded: int
    ffn_sharded: int
    shared_experts_sharded: int
    replicated: int
    experts: int
    expert_biases: int

    @property
    def total(self) -> int:
        """All parameters of the layer."""
        return self.attention_sharded + self.ffn_sharded + self.shared_experts_sharded + self.replicated + self.experts


@dataclass(frozen=True)
class OuterParameters:
    """Parameters that stand outside the layers.

    Attributes:
        embedding: the token table (which is also the head when the two are tied).
        positions: a learned position table.
        embedding_norm: a norm on the embeddings.
        final_norm: the norm before the head.
        head: the output matrix and its bias; 0 when tied.
        vision: image encoder and projector.
        mtp_layer: one multi-token-prediction module without its copies of embedding and head; outside every total.
    """

    embedding: int
    positions: int
    embedding_norm: int
    final_norm: int
    head: int
    vision: int
    mtp_layer: int


@lru_cache(maxsize=4096)
def layer_parameters(model: ModelArchitecture, index: int) -> LayerParameters:
    """Parameters of layer ``index``, by how model parallelism treats them."""
    every = matrices(model, index)
    experts = [matrix for matrix in every if matrix.part == "experts"]
    plain = [matrix for matrix in every if matrix.part != "experts"]
    sinks = model.attention.heads if model.attention.sinks else 0
    return LayerParameters(
        attention_sharded=_divided(plain, "attention") + sinks,
        ffn_sharded=_divided(plain, "ffn"),
        shared_experts_sharded=_divided(plain, "shared_experts"),
        replicated=_norm_elements(model, index) + sum(matrix.replicated_elements for matrix in plain),
        experts=sum(matrix.elements + matrix.bias_elements for matrix in experts),
        expert_biases=sum(matrix.bias_elements for matrix in experts),
    )


def _divided(every: list[Matrix], part: str) -> int:
    return sum(matrix.divided_elements for matrix in every if matrix.part == part)


def matrix_elements(model: ModelArchitecture, index: int) -> int:
    """Elements in the two-dimensional weights of layer ``index``: those that Muon orthogonalises."""
    return sum(matrix.elements for matrix in matrices(model, index))


@lru_cache(maxsize=256)
def outer_parameters(model: ModelArchitecture) -> OuterParameters:
    """Parameters outside the layers."""
    table = model.vocab * model.hidden
    return OuterParameters(
        embedding=table,
        positions=model.learned_positions * model.hidden,
        embedding_norm=_norm_width(model) if model.embedding_norm else 0,
        final_norm=_norm_width(model) if model.final_norm else 0,
        head=(0 if model.tied_embeddings else table) + (model.vocab if model.head_bias else 0),
        vision=model.vision.parameters if model.vision else 0,
        mtp_layer=_mtp_layer(model),
    )


def _mtp_layer(model: ModelArchitecture) -> int:
    """One layer like the last, two norms on its inputs, the matrix that joins them, and the norm of its head."""
    if not model.mtp_layers:
        return 0
    layer = layer_parameters(model, model.layers - 1).total
    return layer + 2 * model.hidden**2 + 3 * _norm_width(model)


@lru_cache(maxsize=256)
def count_parameters(model: ModelArchitecture) -> ParameterCount:
    """Exact parameters by component; tied weights count once, buffers and MTP modules stand outside ``total``."""
    outer = outer_parameters(model)
    kinds = _layer_kinds(model)
    per_kind = {kind: layer_parameters(model, index).total for kind, index in kinds.items()}
    parts = _part_sums(model, kinds)
    per_layer = tuple(per_kind[kind] for kind in _kinds(model))
    total = sum(per_layer) + sum(_outer_in_total(model))
    biases = parts.pop("biases") + (model.vocab if model.head_bias else 0)
    return ParameterCount(
        embedding=outer.embedding + outer.positions,
        head=outer.head,
        vision=outer.vision,
        total=total,
        active=total - _idle_experts(model, parts["experts"]),
        mtp=outer.mtp_layer * model.mtp_layers,
        buffers=_router_corrections(model),
        biases=biases + (model.vision.biases if model.vision else 0),
        per_layer=per_layer,
        norms=parts.pop("norms") + outer.final_norm + outer.embedding_norm,
        **parts,
    )


def _outer_in_total(model: ModelArchitecture) -> tuple[int, ...]:
    outer = outer_parameters(model)
    return (outer.embedding, outer.positions, outer.embedding_norm, outer.final_norm, outer.head, outer.vision)


def _kinds(model: ModelArchitecture) -> tuple[tuple[bool, bool], ...]:
    """For each layer: does it route, does it carry an indexer. Layers of a kind hold the same parameters."""
    routed, indexed = set(model.moe_layers), set(model.indexed_layers)
    return tuple((index in routed, index in indexed) for index in range(model.layers))


def _layer_kinds(model: ModelArchitecture) -> dict[tuple[bool, bool], int]:
    """Each kind of layer that occurs, with one layer of that kind."""
    return {kind: index for index, kind in reversed(list(enumerate(_kinds(model))))}


def _part_sums(model: ModelArchitecture, kinds: dict[tuple[bool, bool], int]) -> dict[str, int]:
    """Parameters of all layers by component, and the bias vectors among them."""
    sums = dict.fromkeys(("attention", "ffn", "experts", "shared_experts", "router", "norms", "biases"), 0)
    occurrences = _kinds(model)
    for kind, index in kinds.items():
        times = occurrences.count(kind)
        for matrix in matrices(model, index):
            sums[matrix.component] += times * (matrix.elements + matrix.bias_elements)
            sums["biases"] += times * matrix.bias_elements
        sums["norms"] += times * _norm_elements(model, index)
        sums["attention"] += times * (model.attention.heads if model.attention.sinks else 0)
    return sums


def _idle_experts(model: ModelArchitecture, expert_parameters: int) -> int:
    """Parameters of the routed experts that one token does not visit."""
    if model.experts is None:
        return 0
    return expert_parameters - expert_parameters * model.experts.top_k // model.experts.count


def _router_corrections(model: ModelArchitecture) -> int:
    experts = model.experts
    return experts.count * len(model.moe_layers) if experts and experts.router_correction_buffer else 0


def _norm_width(model: ModelArchitecture) -> int:
    """Elements of one norm over the hidden size: a weight, and a bias where the family has one."""
    return model.hidden * (2 if model.norm_bias else 1)


def _norm_elements(model: ModelArchitecture, index: int) -> int:
    """Elements of all norms of a layer: around the blocks, on q and k, on the latents, in the indexer."""
    attention = model.attention
    indexer = attention.indexer if index in model.indexed_layers else None
    return (
        model.norms_per_layer * _norm_width(model)
        + _qk_norm_elements(model)
        + (attention.q_lora_rank + attention.kv_lora_rank)
        + (2 * indexer.head_dim if indexer else 0)
    )


def _qk_norm_elements(model: ModelArchitecture) -> int:
    attention = model.attention
    widths = {
        "none": 0,
        "unweighted": 0,
        "per_head": 2 * attention.head_dim,
        "full": (attention.heads + attention.kv_heads) * attention.head_dim,
    }
    return widths[attention.qk_norm] * (2 if model.norm_bias else 1)
