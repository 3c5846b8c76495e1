"""Reads a model given by hyper-parameters: our own short names, each with the field of config.json it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from advisor.architecture.config import read_fields
from advisor.architecture.families import Family, QkNorm, Routing
from advisor.architecture.fields import Fields
from advisor.errors import unknown_name
from advisor.types import ModelArchitecture
from advisor.types.architecture import NormKind

_POINTER = "/architecture"

#: The shapes: config.json field -> the name it has here. They are read exactly as a config is.
_SHAPES: Mapping[str, str] = {
    "num_hidden_layers": "layers",
    "hidden_size": "hidden",
    "num_attention_heads": "heads",
    "num_key_value_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate_size": "ffn",
    "vocab_size": "vocab",
    "hidden_act": "activation",
    "tie_word_embeddings": "tied",
    "num_experts": "experts",
    "num_experts_per_tok": "top_k",
    "moe_intermediate_size": "expert_ffn",
    "n_shared_experts": "shared_experts",
    "shared_expert_intermediate_size": "shared_ffn",
    "moe_layers": "moe_layers",
    "first_k_dense_replace": "first_dense_layers",
    "sliding_window": "sliding_window",
    "max_position_embeddings": "max_positions",
    "num_nextn_predict_layers": "mtp_layers",
    "q_lora_rank": "q_lora_rank",
    "kv_lora_rank": "kv_lora_rank",
    "qk_nope_head_dim": "qk_nope_head_dim",
    "qk_rope_head_dim": "qk_rope_head_dim",
    "v_head_dim": "v_head_dim",
}

#: The choices that config.json leaves to the model_type.
_CHOICES = (
    "name", "gated", "norm", "norm_bias", "qk_norm", "qkv_bias", "output_bias", "ffn_bias", "head_bias", "fused_qkv",
    "parallel_residual", "learned_positions",
)  # fmt: skip
_NORMS = ("rmsnorm", "layernorm", "gemma_rmsnorm")
_QK_NORMS = ("none", "per_head", "full", "unweighted")

ACCEPTED = (*_SHAPES.values(), *_CHOICES)


def read_hyper_parameters(given: Mapping[str, Any]) -> ModelArchitecture:
    """The architecture that hyper-parameters describe.

    Absent ``kv_heads`` equal ``heads``, ``head_dim`` is ``hidden / heads``, ``shared_ffn`` (the width of one shared
    expert) equals ``expert_ffn``; ``norm`` is rmsnorm, the feed-forward gated, embeddings untied, no biases.

    Raises:
        AdvisorError: ``unknown_argument`` for a name that is not accepted, ``incomplete_config``, ``invalid_value``.
    """
    for key in given:
        if key not in ACCEPTED:
            pointer = f"{_POINTER}/{str(key)[:60]}"
            raise unknown_name("architecture field", str(key)[:60], ACCEPTED, pointer=pointer, code="unknown_argument")
    spellings = {field: (name,) for field, name in _SHAPES.items()}
    fields = Fields(given, _POINTER, spellings, {"shared_expert_intermediate_size": given.get("expert_ffn")})
    family = _family(Fields(given, _POINTER, {}))
    name = fields.text("name", "custom")[:80]
    return read_fields(fields, family, name=name, model_type="custom", source="hyper-parameters")


def _family(fields: Fields) -> Family:
    """What a model_type would say, put together from the choices."""
    gated = fields.flag("gated", absent=True)
    norm = cast("NormKind", _one_of(fields, "norm", _NORMS, "rmsnorm"))
    return Family(
        norm=norm,
        norm_bias=fields.flag("norm_bias", absent=norm == "layernorm"),
        qkv_bias=fields.flag("qkv_bias", absent=False),
        output_bias=fields.flag("output_bias", absent=False),
        ffn_bias=fields.flag("ffn_bias", absent=False),
        head_bias=fields.flag("head_bias", absent=False),
        qk_norm=_qk_norm(fields),
        fused_qkv=fields.flag("fused_qkv", absent=False),
        parallel_residual=fields.flag("parallel_residual", absent=False),
        gated=gated,
        activation="silu" if gated else "gelu",
        sliding="all",
        position_rows=0 if fields.flag("learned_positions", absent=False) else None,
        routing=Routing(shared_width="shared_expert_intermediate_size", shared_count="n_shared_experts"),
    )


def _qk_norm(fields: Fields) -> QkNorm:
    """True means a norm per head, the common kind."""
    value = fields.data.get("qk_norm")
    if isinstance(value, bool):
        return "per_head" if value else "none"
    return cast("Literal['none', 'per_head', 'full', 'unweighted']", _one_of(fields, "qk_norm", _QK_NORMS, "none"))


def _one_of(fields: Fields, name: str, accepted: tuple[str, ...], absent: str) -> str:
    value = fields.text(name, absent)
    if value not in accepted:
        raise unknown_name(name, value[:60], accepted, pointer=f"{_POINTER}/{name}", code="invalid_value")
    return value
