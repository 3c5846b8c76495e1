"""Which variant of each term a case needs: the choices that select terms, read from model and training."""

from __future__ import annotations

from advisor.checkpoints import LOADING, SAVING, way
from advisor.placement import MEGATRON
from advisor.presence import PYTORCH_PIPELINES, SHARDING_FRAMEWORKS, keeps_main_gradient
from advisor.recompute import selects_operators
from advisor.releases import expands_key_value_heads, logits_path, quantizes_experts
from advisor.types.case import Case


def choices(case: Case, *, masked: bool = False) -> dict[str, str]:
    """The choices that select the terms of a case. Nothing here varies with the layout, so columns share them."""
    model, training = case.model, case.training
    sharding = training.framework in SHARDING_FRAMEWORKS
    adapters = training.method in {"lora", "dora", "qlora"}
    return {
        "profile": case.policy.profile,
        "base": "quantized" if training.base_weight_bytes else "plain",
        "expert_base": "quantized" if training.base_weight_bytes and quantizes_experts(case) else "plain",
        "reduction": "in_place" if training.framework == "fsdp1" else "copied",
        "selective": "operators" if selects_operators(case) else "modules",
        "frozen_units": "fsdp1" if training.framework == "fsdp1" and adapters else "none",
        "cast": "autocast" if training.recipe.cast_copy_bytes else "none",
        "sync": "last" if sharding and _may_wait(case) else "every",
        "step": "foreach" if training.optimizer.step_matrix_bytes else "by_tensor",
        "steps": "by_group" if training.framework == "deepspeed" else "at_once",
        "stepped": "recast" if training.recipe.step_weight_bytes else "as_stepped",
        "adapters": "on" if adapters else "off",
        "norm": model.norm,
        "implementation": training.implementation,
        "residual_dropout": "on" if model.residual_dropout else "off",
        "attention": model.attention.kind,
        "context": case.layout.context_parallel_kind,
        "kernel": "sdpa_masked" if masked and training.attention == "sdpa" else training.attention,
        "qkv": _qkv(case),
        "kv": "expanded" if expands_key_value_heads(case) or (masked and training.attention == "sdpa") else "grouped",
        "heads": "equal" if model.attention.heads == model.attention.kv_heads else "grouped",
        "qk_norm": model.attention.qk_norm,
        "ffn": _ffn(case),
        "experts": _experts(case),
        "loss": _loss(case),
        "logits": logits_path(case),
        "gather": "units" if sharding else "none",
        "main_gradient": _main_gradient(case),
        "tied": "on" if model.tied_embeddings else "off",
        "loading": way(case, LOADING),
        "saving": way(case, SAVING),
        "buckets": training.framework if training.framework in {"ddp", "deepspeed"} else "none",
    }


def _may_wait(case: Case) -> bool:
    """Whether some layout of the job reduces gradients at the last micro-batch only."""
    return case.training.gradient_sync == "last" or case.training.framework in PYTORCH_PIPELINES


def _loss(case: Case) -> str:
    """What a framework means: Megatron fuses over whole logits, torchtitan's chunks never make them whole."""
    framework, loss = case.training.framework, case.training.loss
    if framework in MEGATRON and loss == "fused":
        return "fused_logits"
    return "fused" if framework == "torchtitan" and loss == "chunked" else loss


def _main_gradient(case: Case) -> str:
    """Megatron's fused layers add into the main gradient directly; elsewhere a narrower one is made and copied."""
    if not keeps_main_gradient(case) or case.training.framework not in {"single", "ddp"}:
        return "none"
    return "copied"


def _qkv(case: Case) -> str:
    attention = case.model.attention
    if not attention.fused_qkv or case.training.implementation == "fused":
        return "separate"
    return "fused_rotated" if attention.rotary_share > 0 else "fused"


def _ffn(case: Case) -> str:
    ffn = case.model.ffn
    if ffn is None or ffn.gated:
        return "gated"
    if ffn.activation == "relu":
        return "relu"
    return "plain_unfused" if ffn.activation == "gelu_new" and case.training.implementation == "reference" else "plain"


def _experts(case: Case) -> str:
    experts = case.model.experts
    if experts is None:
        return "none"
    if experts.dense_experts and case.training.implementation == "reference":
        return "every_token"
    return "clamped" if experts.clamped_activation else "routed"
