"""Reads a model given by hyper-parameters: our own short names, each with the field of config.json it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from advisor.architecture.blocks import ACTIVATIONS
from advisor.architecture.config import read_fields
from advisor.architecture.families import Family, QkNorm, Routing
from advisor.architecture.fields import Fields
from advisor.errors import AdvisorError, nearest, unknown_name
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
    "attention_dropout": "attention_dropout",
    "residual_dropout": "residual_dropout",
}

#: The choices that config.json leaves to the model_type.
_CHOICES = (
    "name", "gated", "norm", "norm_bias", "qk_norm", "qkv_bias", "output_bias", "ffn_bias", "head_bias", "fused_qkv",
    "parallel_residual", "learned_positions",
)  # fmt: skip

#: A field -> the one without which it would change nothing.
_BELONGS_TO: Mapping[str, str] = {
    **dict.fromkeys(("top_k", "expert_ffn", "shared_experts", "moe_layers", "first_dense_layers"), "experts"),
    **dict.fromkeys(("q_lora_rank", "qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim"), "kv_lora_rank"),
    "shared_ffn": "shared_experts",
}

#: A field -> the one beside which it would change nothing.
_DECIDED_BY: Mapping[str, str] = {
    "first_dense_layers": "moe_layers",
    "kv_heads": "kv_lora_rank",
    "head_dim": "kv_lora_rank",
}

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
    _refuse_unknown(given)
    _refuse_useless(given)
    spellings = {field: (name,) for field, name in _SHAPES.items()}
    defaults = {"shared_expert_intermediate_size": given.get("expert_ffn")}
    fields = Fields(given, _POINTER, spellings, defaults, written=True)
    name = fields.text("name", "custom")[:80]
    model = read_fields(fields, _family(fields), name=name, model_type="custom", source="hyper-parameters")
    if given.get("ffn") is not None and model.ffn is None:
        return model.model_copy(update={"notes": ("ffn is not used: every layer routes to experts",)})
    return model


def _refuse_unknown(given: Mapping[str, Any]) -> None:
    for key in map(str, given):
        if key not in ACCEPTED:
            close = nearest(key[:60], ACCEPTED)
            hint = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
            detail = f"{key[:60]!r} is not a field of architecture; {hint}accepted: {', '.join(ACCEPTED)}"
            raise AdvisorError("unknown_argument", detail, pointer=f"{_POINTER}/{key[:60]}", suggestions=close)


def _refuse_useless(given: Mapping[str, Any]) -> None:
    """Refuses a field that would change nothing: what it belongs to is absent, or another field decides it."""
    for key, owner in _BELONGS_TO.items():
        if given.get(key) is not None and given.get(owner) is None:
            detail = f"{key} is given without {owner} and would change nothing; give {owner} as well, or leave it out"
            raise AdvisorError("incomplete_config", detail, pointer=f"{_POINTER}/{key}", suggestions=(owner,))
    for key, decider in _DECIDED_BY.items():
        if given.get(key) is not None and given.get(decider) is not None:
            detail = f"{key} is given beside {decider}, which decides it; leave {key} out"
            raise AdvisorError("conflicting_arguments", detail, pointer=f"{_POINTER}/{key}")


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
        activation=_one_of(fields, "activation", tuple(ACTIVATIONS), "silu" if gated else "gelu"),
        sliding="all",
        position_rows=0 if fields.flag("learned_positions", absent=False) else None,
        routing=Routing(shared_width="shared_expert_intermediate_size", shared_count="n_shared_experts", optional=True),
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
