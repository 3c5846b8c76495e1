"""The matrices of a layer: the one list from which counts, shards and LoRA adapters follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from advisor.architecture.families import ModuleNames, module_names
from advisor.types import ModelArchitecture

Part = Literal["attention", "ffn", "experts", "shared_experts", "router", "shared_gate", "indexer"]

#: How tensor parallelism cuts a matrix: by its outputs, by its inputs, or not at all.
Split = Literal["column", "row", "none"]

_COMPONENT_OF = {"shared_gate": "shared_experts", "indexer": "attention"}


@dataclass(frozen=True)
class Matrix:
    """One linear map of a layer, or as many equal ones as there are experts.

    Attributes:
        name: last part of its module's name in transformers (``q_proj``).
        copies: how many equal matrices there are.
        bias: whether each has a bias vector of ``out_features`` elements.
    """

    name: str
    in_features: int
    out_features: int
    part: Part
    split: Split
    copies: int = 1
    bias: bool = False

    @property
    def elements(self) -> int:
        """Elements of the weights of all copies."""
        return self.in_features * self.out_features * self.copies

    @property
    def bias_elements(self) -> int:
        """Elements of the bias vectors of all copies."""
        return self.out_features * self.copies if self.bias else 0

    @property
    def divided_elements(self) -> int:
        """Elements that tensor parallelism divides; the bias only where the outputs are divided."""
        if self.split == "none":
            return 0
        return self.elements + (self.bias_elements if self.split == "column" else 0)

    @property
    def replicated_elements(self) -> int:
        """Elements that every tensor-parallel rank holds."""
        return self.elements + self.bias_elements - self.divided_elements

    @property
    def component(self) -> str:
        """The component of ParameterCount that it is counted under."""
        return _COMPONENT_OF.get(self.part, self.part)


@dataclass(frozen=True)
class LinearShape:
    """A linear module that LoRA can adapt.

    Attributes:
        name: last part of the module's name in transformers, as LoRA targets spell it.
        in_features: width of its input.
        out_features: width of its output.
        copies: equal modules of that name in the layer (the routed experts).
        part: attention, ffn, experts or shared_experts.
    """

    name: str
    in_features: int
    out_features: int
    copies: int
    part: Part


def linear_shapes(model: ModelArchitecture, index: int) -> tuple[LinearShape, ...]:
    """The modules of layer ``index`` that LoRA can adapt: all matrices but router, shared gate and indexer."""
    adaptable = ("attention", "ffn", "experts", "shared_experts")
    return tuple(
        LinearShape(matrix.name, matrix.in_features, matrix.out_features, matrix.copies, matrix.part)
        for matrix in matrices(model, index)
        if matrix.part in adaptable
    )


@lru_cache(maxsize=4096)
def matrices(model: ModelArchitecture, index: int) -> tuple[Matrix, ...]:
    """Every matrix of layer ``index``."""
    names = module_names(model.model_type)
    latent = model.attention.kind == "mla"
    attention = _latent_attention(model, names) if latent else _grouped_attention(model, names)
    block = _routed(model, names) if index in model.moe_layers else _dense(model, names)
    indexer = _indexer(model) if index in model.indexed_layers else ()
    return (*attention, *indexer, *block)


def _grouped_attention(model: ModelArchitecture, names: ModuleNames) -> Iterator[Matrix]:
    attention, hidden = model.attention, model.hidden
    queries, values = attention.heads * attention.head_dim, attention.kv_heads * attention.v_head_dim
    keys = attention.kv_heads * attention.head_dim
    inputs = (
        [(names.fused_qkv, queries + keys + values)]
        if attention.fused_qkv
        else [(names.query, queries), (names.key, keys), (names.value, values)]
    )
    for name, width in inputs:
        yield Matrix(name, hidden, width, "attention", "column", bias=attention.qkv_bias)
    heads_out = attention.heads * attention.v_head_dim
    yield Matrix(names.output, heads_out, hidden, "attention", "row", bias=attention.output_bias)


def _latent_attention(model: ModelArchitecture, names: ModuleNames) -> Iterator[Matrix]:
    attention, hidden = model.attention, model.hidden
    queries = attention.heads * attention.head_dim
    rank, latent, bias = attention.q_lora_rank, attention.kv_lora_rank, attention.qkv_bias
    nope = attention.head_dim - attention.qk_rope_head_dim
    if rank:
        yield Matrix("q_a_proj", hidden, rank, "attention", "none", bias=bias)
        yield Matrix("q_b_proj", rank, queries, "attention", "column")
    else:
        yield Matrix(names.query, hidden, queries, "attention", "column")
    shared_keys = latent + attention.qk_rope_head_dim
    yield Matrix("kv_a_proj_with_mqa", hidden, shared_keys, "attention", "none", bias=bias)
    yield Matrix("kv_b_proj", latent, attention.heads * (nope + attention.v_head_dim), "attention", "column")
    heads_out = attention.heads * attention.v_head_dim
    yield Matrix(names.output, heads_out, hidden, "attention", "row", bias=attention.output_bias)


def _indexer(model: ModelArchitecture) -> Iterator[Matrix]:
    """Query heads and one shared key head that score key blocks; every tensor-parallel rank holds them whole."""
    indexer = model.attention.indexer
    if indexer is not None:
        yield Matrix("q_proj", model.hidden, indexer.heads * indexer.head_dim, "indexer", "none")
        yield Matrix("k_proj", model.hidden, indexer.head_dim, "indexer", "none")


def _dense(model: ModelArchitecture, names: ModuleNames) -> Iterator[Matrix]:
    ffn = model.ffn
    if ffn is not None:
        yield from _feed_forward(
            model, names, "ffn", ffn.hidden, gated=ffn.gated, fused=ffn.fused_gate_up, bias=ffn.bias
        )


def _routed(model: ModelArchitecture, names: ModuleNames) -> Iterator[Matrix]:
    experts = model.experts
    if experts is None:
        return
    gated, hidden = experts.gated, model.hidden
    yield Matrix("gate", hidden, experts.count, "router", "none", bias=experts.router_bias)
    yield from _feed_forward(
        model, names, "experts", experts.hidden, gated=gated, bias=experts.expert_bias, copies=experts.count
    )
    if experts.shared_hidden:
        yield from _feed_forward(model, names, "shared_experts", experts.shared_hidden, gated=gated)
    if experts.shared_gate:
        yield Matrix("shared_expert_gate", hidden, 1, "shared_gate", "none")


def _feed_forward(
    model: ModelArchitecture, names: ModuleNames, part: Part, width: int, *,
    gated: bool, fused: bool = False, bias: bool = False, copies: int = 1,
) -> Iterator[Matrix]:  # fmt: skip
    """The two or three matrices of a feed-forward block; gate and up may be one."""
    hidden = model.hidden
    inputs = [(names.gate, width), (names.up, width)] if gated else [(names.up, width)]
    if gated and fused:
        inputs = [(names.fused_gate_up, 2 * width)]
    for name, outputs in inputs:
        yield Matrix(name, hidden, outputs, part, "column", copies, bias)
    yield Matrix(names.down, width, hidden, part, "row", copies, bias)
