"""Reads the blocks of a layer from a configuration: attention, feed-forward, experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from advisor.architecture.families import UNKNOWN, Family, Routing, Setting
from advisor.architecture.fields import Fields, missing
from advisor.types import Attention, Experts, FeedForward, Indexer

#: How configs name activations -> the names that the memory terms know.
ACTIVATIONS = {
    "silu": "silu", "swish": "silu", "swigluoai": "silu", "gelu": "gelu", "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new", "gelu_pytorch_tanh": "gelu_tanh", "gelu_tanh": "gelu_tanh", "relu": "relu",
}  # fmt: skip
MOST_HIDDEN, _MOST_HEADS, _MOST_FFN, _MOST_EXPERTS = 10**6, 10**5, 10**7, 10**5


def setting_of(fields: Fields, setting: Setting) -> bool:
    """What a family sets, or what the config field that it names says."""
    return setting if isinstance(setting, bool) else fields.flag(setting, absent=False)


def dropout_of(fields: Fields, name: str) -> float:
    """A dropout rate; one that drops everything is refused like one that is no rate."""
    rate = fields.share(name, 0.0)
    if rate == 1:
        raise fields.refuse(fields.find(name)[0], rate, "a number from 0 to below 1")
    return rate


def read_attention(fields: Fields, family: Family, hidden: int, *, slides: bool, indexed: bool) -> Attention:
    """The attention block.

    Args:
        fields: the configuration.
        family: what the model_type adds.
        hidden: the hidden size.
        slides: whether any layer has a sliding window.
        indexed: whether any layer has an indexer.
    """
    heads = fields.count("num_attention_heads", at_most=_MOST_HEADS)
    shape = _latent_shape(fields, heads) if _is_latent(fields, family) else _grouped_shape(fields, heads, hidden)
    return Attention(
        heads=heads,
        **shape,
        qkv_bias=setting_of(fields, family.qkv_bias),
        output_bias=setting_of(fields, family.output_bias),
        qk_norm=family.qk_norm if setting_of(fields, family.qk_norm_when) else "none",
        fused_qkv=family.fused_qkv,
        rotary_share=_rotary_share(fields, family, shape),
        rotary_interleaved=family.rotary_interleaved,
        sinks=family.sinks,
        query_concat=family.query_concat,
        softmax_fp32=family.softmax_fp32,
        logit_softcap=fields.has("attn_logit_softcapping"),
        sliding_window=fields.count("sliding_window") if slides else 0,
        indexer=_read_indexer(fields) if indexed else None,
        dropout=dropout_of(fields, "attention_dropout"),
    )


def _is_latent(fields: Fields, family: Family) -> bool:
    return family.latent_attention or fields.has("kv_lora_rank")


def _grouped_shape(fields: Fields, heads: int, hidden: int) -> dict[str, Any]:
    """Shapes of plain, grouped and multi-query attention."""
    kv_heads = fields.count_or("num_key_value_heads", heads, at_most=_MOST_HEADS)
    if heads % kv_heads:
        spelling = fields.find("num_key_value_heads")[0]
        raise fields.refuse(spelling, kv_heads, f"a divisor of the {heads} attention heads")
    head_dim = fields.count_or("head_dim", None, at_most=MOST_HIDDEN)
    if head_dim is None and hidden % heads:
        spelling = fields.find("num_attention_heads")[0]
        raise fields.refuse(spelling, heads, f"a divisor of the hidden size {hidden:,}, or head_dim given beside it")
    head_dim = head_dim or hidden // heads
    return {"kv_heads": kv_heads, "head_dim": head_dim, "v_head_dim": head_dim}


def _latent_shape(fields: Fields, heads: int) -> dict[str, Any]:
    """Shapes of multi-head latent attention (DeepSeek)."""
    due = ("kv_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    absent = [name for name in due if not fields.has(name)]
    if absent:
        raise missing(fields, absent)
    latent, nope, rope, value = (fields.count(name, at_most=MOST_HIDDEN) for name in due)
    return {
        "kind": "mla", "kv_heads": heads, "head_dim": nope + rope, "v_head_dim": value, "kv_lora_rank": latent,
        "q_lora_rank": fields.count_or("q_lora_rank", 0, at_least=0, at_most=MOST_HIDDEN), "qk_rope_head_dim": rope,
    }  # fmt: skip


def _rotary_share(fields: Fields, family: Family, shape: Mapping[str, Any]) -> float:
    """The rotated share of a head: by rule in latent attention, else from whichever field gives it."""
    head_dim: int = shape["head_dim"]
    if shape.get("kind") == "mla":
        return float(shape["qk_rope_head_dim"]) / head_dim
    if fields.has("rotary_dim"):
        return float(fields.count("rotary_dim", at_most=head_dim)) / head_dim
    nested = fields.inside("rope_parameters")
    share = nested.share("partial_rotary_factor", family.rotary_share) if nested else family.rotary_share
    return fields.share("rotary_pct", fields.share("partial_rotary_factor", share))


def _read_indexer(fields: Fields) -> Indexer:
    sparse = fields.inside("sparse_attention_config") or fields
    heads = sparse.count_or("sparse_num_index_heads", fields.count_or("index_n_heads", 4, at_most=_MOST_HEADS))
    width = sparse.count_or("sparse_index_dim", fields.count_or("index_head_dim", 128, at_most=MOST_HIDDEN))
    return Indexer(heads=heads, head_dim=width)


def read_ffn(fields: Fields, family: Family, hidden: int, *, routes: bool) -> FeedForward:
    """The dense feed-forward block; ``routes`` says that other layers of the model hold experts instead."""
    name = family.routing.dense_width if family.routing and routes else "intermediate_size"
    width = fields.count_or(name, None, at_most=_MOST_FFN)
    if width is None and family.ffn_ratio:
        width = family.ffn_ratio * hidden
    if width is None:
        raise missing(fields, [name])
    return FeedForward(
        hidden=width,
        gated=family.gated,
        bias=setting_of(fields, family.ffn_bias),
        fused_gate_up=family.fused_gate_up,
        activation=_activation(fields, family),
    )


def _activation(fields: Fields, family: Family) -> str:
    """The activation by our name; the family's own where the config names one that is not known."""
    given = fields.text("hidden_act", family.activation)
    return ACTIVATIONS.get(given, ACTIVATIONS[family.activation])


def read_experts(fields: Fields, family: Family) -> Experts | None:
    """The experts of a model that routes; None for a dense one."""
    if family.routing is None or (family.routing.optional and not fields.has("num_experts")):
        return None
    count = fields.count("num_experts", at_least=0, at_most=_MOST_EXPERTS)
    if count == 0:
        return None
    routing = _usable_routing(fields, family, family.routing)
    shared, shared_hidden = _shared_experts(fields, family)
    return Experts(
        count=count,
        top_k=fields.count("num_experts_per_tok", at_most=count),
        hidden=fields.count(routing.expert_width, at_most=_MOST_FFN),
        gated=family.gated,
        shared=shared,
        shared_hidden=shared_hidden,
        shared_gate=routing.shared_gate and shared > 0,
        router_bias=routing.router_bias,
        router_correction_buffer=routing.correction_buffer,
        expert_bias=routing.expert_bias,
        router_fp32=routing.router_fp32,
        dense_experts=routing.dense_experts,
        clamped_activation=routing.clamped,
    )


def _usable_routing(fields: Fields, family: Family, routing: Routing) -> Routing:
    """The family's routing; an unknown type that gives no width of its own for experts uses the dense one."""
    if family is UNKNOWN and not fields.has(routing.expert_width):
        return replace(routing, expert_width="intermediate_size")
    return routing


def _shared_experts(fields: Fields, family: Family) -> tuple[int, int]:
    """How many experts every token visits, and their feed-forward width together."""
    routing = family.routing
    if routing is None or not routing.shared_width:
        return 0, 0
    number = fields.count_or(routing.shared_count, 0, at_least=0, at_most=1024) if routing.shared_count else 1
    width = fields.count_or(routing.shared_width, 0, at_least=0, at_most=_MOST_FFN)
    return (number, number * width) if number and width else (0, 0)
