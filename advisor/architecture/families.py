"""What each model_type of transformers means beyond its config: which norms, biases and matrices it has.

One record a family, data only. A setting that a config may switch is written as the name of that config field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from advisor.types.architecture import NormKind

#: True or False where the code decides; the name of a config field where the config does (False when absent).
Setting = bool | str

QkNorm = Literal["none", "per_head", "full", "unweighted"]


@dataclass(frozen=True)
class ModuleNames:
    """The last part of each matrix's name in transformers, as LoRA targets spell it."""

    query: str = "q_proj"
    key: str = "k_proj"
    value: str = "v_proj"
    fused_qkv: str = "qkv_proj"
    output: str = "o_proj"
    gate: str = "gate_proj"
    up: str = "up_proj"
    fused_gate_up: str = "gate_up_proj"
    down: str = "down_proj"


@dataclass(frozen=True)
class Routing:
    """How a family's mixture-of-experts layers are built.

    Attributes:
        expert_width: the config field with the feed-forward width of one routed expert.
        dense_width: the config field with the width of a layer that does not route.
        shared_width: the field with the width of the shared experts (of one of them, where shared_count is a field).
        shared_count: the field with the number of shared experts; empty: one where shared_width is set.
        stride: the field that says that every n-th layer routes, the last of each n.
        optional: whether a model without experts is one of the kind too.
    """

    expert_width: str = "moe_intermediate_size"
    dense_width: str = "intermediate_size"
    shared_width: str = ""
    shared_count: str = ""
    stride: str = ""
    optional: bool = False
    shared_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    correction_buffer: bool = False
    router_fp32: bool = False
    dense_experts: bool = False
    clamped: bool = False


@dataclass(frozen=True)
class Family:
    """The constants of a model_type, named as the fields of ModelArchitecture where they end up there.

    Attributes:
        sliding: which layers slide when the config has no layer_types: none, all, the even ones, all but each
            pattern-th, or those from max_window_layers on (where use_sliding_window is true).
        position_rows: rows of a learned position table beyond max_position_embeddings; None: no such table.
        ffn_ratio: feed-forward width over hidden size where the config leaves the width out; 0: it must be given.
        query_concat: rotation joins the query's rotated and plain parts into a new tensor.
        softmax_fp32: eager attention takes its softmax in fp32.
        defaults: what the family's own code takes for a field that its config leaves out.
    """

    norm: NormKind = "rmsnorm"
    norm_bias: bool = False
    norms_per_layer: int = 2
    qkv_bias: Setting = False
    output_bias: Setting = False
    ffn_bias: Setting = False
    head_bias: bool = False
    qk_norm: QkNorm = "none"
    qk_norm_when: Setting = True
    latent_attention: bool = False
    gated: bool = True
    fused_qkv: bool = False
    fused_gate_up: bool = False
    activation: str = "silu"
    tied: bool = False
    sinks: bool = False
    query_concat: bool = False
    softmax_fp32: bool = True
    parallel_residual: Setting = False
    rotary_share: float = 1.0
    rotary_interleaved: bool = False
    position_rows: int | None = None
    ffn_ratio: int = 0
    sliding: Literal["none", "all", "even", "pattern", "upper"] = "none"
    routing: Routing | None = None
    names: ModuleNames = ModuleNames()
    defaults: Mapping[str, Any] = field(default_factory=dict)


_LLAMA = Family(qkv_bias="attention_bias", output_bias="attention_bias", ffn_bias="mlp_bias")
_MISTRAL = Family(sliding="all", defaults={"num_key_value_heads": 8})
_QWEN2 = Family(qkv_bias=True, sliding="upper")
_QWEN3 = Family(
    qkv_bias="attention_bias", output_bias="attention_bias", qk_norm="per_head", sliding="upper",
    defaults={"head_dim": 128},
)  # fmt: skip
_GEMMA = Family(
    norm="gemma_rmsnorm", qkv_bias="attention_bias", output_bias="attention_bias", activation="gelu_pytorch_tanh",
    tied=True, defaults={"head_dim": 256},
)  # fmt: skip
_GEMMA2 = replace(_GEMMA, norms_per_layer=4, sliding="even")
_GEMMA3 = replace(
    _GEMMA2, qk_norm="per_head", sliding="pattern",
    defaults={
        "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208,
        "sliding_window": 4096, "sliding_window_pattern": 6, "max_position_embeddings": 131_072,
    },
)  # fmt: skip
_DEEPSEEK_ROUTING = Routing(shared_width="moe_intermediate_size", shared_count="n_shared_experts", router_fp32=True)
_DEEPSEEK2 = Family(
    latent_attention=True, qkv_bias="attention_bias", output_bias="attention_bias", routing=_DEEPSEEK_ROUTING
)
_DEEPSEEK3 = replace(
    _DEEPSEEK2, rotary_interleaved=True, routing=replace(_DEEPSEEK_ROUTING, correction_buffer=True)
)  # fmt: skip
_LLAMA4 = Family(
    qkv_bias="attention_bias", output_bias="attention_bias", qk_norm="unweighted", qk_norm_when="use_qk_norm",
    rotary_interleaved=True, softmax_fp32=False,
    routing=Routing(
        expert_width="intermediate_size", dense_width="intermediate_size_mlp", shared_width="intermediate_size",
        stride="interleave_moe_layer_step", dense_experts=True,
    ),
    defaults={"use_qk_norm": True, "head_dim": 128, "interleave_moe_layer_step": 1},
)  # fmt: skip
_MINIMAX_M3 = Family(
    norm="gemma_rmsnorm", qk_norm="per_head", fused_gate_up=True,
    routing=Routing(
        expert_width="intermediate_size", dense_width="dense_intermediate_size",
        shared_width="shared_intermediate_size", correction_buffer=True, clamped=True,
    ),
    defaults={
        "dense_intermediate_size": 12_288, "shared_intermediate_size": 3072, "head_dim": 128, "rotary_dim": 64,
        "num_key_value_heads": 4, "num_attention_heads": 64, "num_experts": 128, "num_experts_per_tok": 4,
    },
)  # fmt: skip
_GPT_OSS = Family(
    norm="gemma_rmsnorm", softmax_fp32=False, query_concat=True, qkv_bias="attention_bias",
    output_bias="attention_bias", sinks=True,
    sliding="even",
    routing=Routing(expert_width="intermediate_size", router_bias=True, expert_bias=True, clamped=True),
    defaults={"attention_bias": True, "head_dim": 64},
)  # fmt: skip
_GLM4 = Family(
    norms_per_layer=4, qkv_bias="attention_bias", fused_gate_up=True, rotary_share=0.5, rotary_interleaved=True,
    query_concat=True,
    defaults={"head_dim": 128},
)  # fmt: skip
_GLM4_MOE = Family(
    qkv_bias="attention_bias", qk_norm="per_head", qk_norm_when="use_qk_norm", rotary_share=0.5,
    routing=replace(_DEEPSEEK_ROUTING, correction_buffer=True),
    defaults={"head_dim": 128, "num_key_value_heads": 8},
)  # fmt: skip
_PHI3 = Family(fused_qkv=True, query_concat=True, fused_gate_up=True, sliding="all")
_PHI = Family(
    norm="layernorm", norm_bias=True, norms_per_layer=1, qkv_bias=True, output_bias=True, ffn_bias=True,
    head_bias=True, qk_norm="per_head", qk_norm_when="qk_layernorm", gated=False, activation="gelu_new",
    parallel_residual=True, rotary_share=0.5, names=ModuleNames(output="dense", up="fc1", down="fc2"),
)  # fmt: skip
_GPT2 = Family(
    norm="layernorm", norm_bias=True, qkv_bias=True, output_bias=True, ffn_bias=True, gated=False, fused_qkv=True,
    softmax_fp32=False, activation="gelu_new", tied=True, rotary_share=0.0, position_rows=0, ffn_ratio=4,
    names=ModuleNames(fused_qkv="c_attn", output="c_proj", up="c_fc", down="c_proj"),
    defaults={"residual_dropout": 0.1, "embedding_dropout": 0.1, "attention_dropout": 0.1,
              "max_position_embeddings": 1024},
)  # fmt: skip
_GPT_NEOX = Family(
    norm="layernorm", norm_bias=True, qkv_bias="attention_bias", output_bias="attention_bias", ffn_bias=True,
    gated=False, fused_qkv=True, activation="gelu", parallel_residual="use_parallel_residual", rotary_share=0.25,
    query_concat=True,
    names=ModuleNames(fused_qkv="query_key_value", output="dense", up="dense_h_to_4h", down="dense_4h_to_h"),
    defaults={"attention_bias": True, "use_parallel_residual": True},
)  # fmt: skip
_OPT = Family(
    norm="layernorm", norm_bias=True, qkv_bias="enable_bias", output_bias="enable_bias", ffn_bias="enable_bias",
    gated=False, activation="relu", tied=True, rotary_share=0.0, position_rows=2,
    names=ModuleNames(output="out_proj", up="fc1", down="fc2"),
    defaults={"enable_bias": True, "residual_dropout": 0.1, "embedding_dropout": 0.1,
              "max_position_embeddings": 2048},
)  # fmt: skip

_MPT = Family(
    norm="layernorm", gated=False, fused_qkv=True, activation="gelu", tied=True, rotary_share=0.0, ffn_ratio=4,
    names=ModuleNames(fused_qkv="Wqkv", output="out_proj"),
)  # fmt: skip
_STARCODER2 = Family(
    norm="layernorm", norm_bias=True, qkv_bias="use_bias", output_bias="use_bias", ffn_bias="use_bias", gated=False,
    activation="gelu_pytorch_tanh", tied=True, sliding="all", names=ModuleNames(up="c_fc", down="c_proj"),
    defaults={"use_bias": True, "num_key_value_heads": 2},
)  # fmt: skip

#: model_type -> family. Vision-language wrappers stand for their language model; their tower is read apart.
FAMILIES: Mapping[str, Family] = {
    "llama": _LLAMA,
    "mistral": _MISTRAL,
    "mistral3": replace(_MISTRAL, sliding="none"),
    "mixtral": replace(_MISTRAL, routing=Routing(expert_width="intermediate_size")),
    "qwen2": _QWEN2,
    "qwen2_5_vl": _QWEN2,
    "qwen2_5_vl_text": _QWEN2,
    "qwen2_moe": replace(_QWEN2, routing=Routing(shared_width="shared_expert_intermediate_size", shared_gate=True)),
    "qwen3": _QWEN3,
    "qwen3_moe": replace(_QWEN3, routing=Routing()),
    "gemma": _GEMMA,
    "gemma2": _GEMMA2,
    "gemma3": _GEMMA3,
    "gemma3_text": _GEMMA3,
    "phi": _PHI,
    "phi3": _PHI3,
    "deepseek_v2": _DEEPSEEK2,
    "deepseek_v3": _DEEPSEEK3,
    "kimi_k2": _DEEPSEEK3,
    "gpt_oss": _GPT_OSS,
    "glm4": _GLM4,
    "glm4_moe": _GLM4_MOE,
    "llama4": _LLAMA4,
    "llama4_text": _LLAMA4,
    "minimax_m3": _MINIMAX_M3,
    "minimax_m3_vl": _MINIMAX_M3,
    "minimax_m3_vl_text": _MINIMAX_M3,
    "gpt2": _GPT2,
    "gpt_neox": _GPT_NEOX,
    "opt": _OPT,
    "gpt_bigcode": replace(_GPT2, defaults={**_GPT2.defaults, "num_key_value_heads": 1}),
    "mpt": _MPT,
    "granite": _LLAMA,
    "smollm3": replace(_LLAMA, tied=True),
    "starcoder2": _STARCODER2,
    "olmo2": Family(qkv_bias="attention_bias", output_bias="attention_bias", qk_norm="full"),
}

#: What an unknown model_type is read as: Llama-like, with the switches that its config may name.
UNKNOWN = replace(
    _LLAMA, qk_norm="per_head", qk_norm_when="use_qk_norm", sliding="all",
    routing=Routing(shared_width="moe_intermediate_size", shared_count="n_shared_experts", optional=True),
)  # fmt: skip


def module_names(model_type: str) -> ModuleNames:
    """The names of a model_type's matrices; Llama's where the type is not known."""
    return FAMILIES.get(model_type, UNKNOWN).names
