"""How a published measurement stores its weights, gradients and optimizer states → the arguments of a case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.validation.facts import NotGivenError

Row = Mapping[str, Any]

MEGATRON = ("megatron", "megatron_fsdp")
ADAPTERS = ("lora", "qlora", "dora")


def text(row: Row, name: str) -> str:
    """A field as lower-case text; empty when it is absent."""
    return str(row.get(name) or "").lower()


def is_megatron_deepspeed(row: Row) -> bool:
    """Megatron's modules under DeepSpeed's engine, optimizer and pipeline."""
    return "megatron-deepspeed" in text(row, "framework")


def precision(row: Row, framework: str, method: str) -> dict[str, Any]:
    """The precision recipe, with another gradient dtype than its own where the row says so.

    Raises:
        NotGivenError: saved tensors narrower than the recipes know.
    """
    stated = {name: str(value or "").lower() for name, value in (row.get("precision") or {}).items()}
    compute, params = stated.get("compute", ""), stated.get("params", "")
    if any(part in compute for part in ("mxfp8", "nvfp4", "fp4")):
        raise NotGivenError("not modelled yet: saved tensors in fp8 or fp4")
    if method in ADAPTERS and framework not in MEGATRON:
        return {"precision": _adapter_precision(row, params, compute)}
    if framework in MEGATRON:
        return _megatron_precision(row, stated)
    return _torch_precision(framework, stated)


#: Megatron-Bridge's recipes at 067f987d that rows only name: what they say of precision.
BRIDGE_RECIPES = {
    "moonlight": {"precision": "bf16_moments", "gradient_dtype": "bf16"},
    "llama3-70b-sft": {"precision": "fp8_weights", "gradient_dtype": "bf16"},
    "qwen3-30b-a3b-16h100": {"precision": "bf16_mixed", "gradient_dtype": "bf16"},
}


def _megatron_precision(row: Row, stated: Mapping[str, str]) -> dict[str, Any]:
    recipe = next((found for name, found in BRIDGE_RECIPES.items() if f"megatron-bridge/{name}" in row["id"]), None)
    if recipe:
        return recipe
    if stated.get("params", "").startswith(("fp32", "fp16")):
        return {"precision": "fp32" if "fp32" in stated["params"] else "fp16_mixed"}
    bf16_gradients = stated.get("grads", "").startswith(("bf16", "bfloat16"))
    precision = "fp8_mixed" if "fp8" in stated.get("compute", "") else "bf16_mixed"
    return {"precision": precision, "gradient_dtype": "bf16" if bf16_gradients else None}


def _torch_precision(framework: str, stated: Mapping[str, str]) -> dict[str, Any]:
    fp32_reduce = "fp32 reduce" in stated.get("grads", "") and stated.get("params", "").startswith("bf16")
    if fp32_reduce and framework == "fsdp2":
        return {"precision": "bf16", "gradient_dtype": "fp32"}
    if "bf16_optimizer" in stated.get("grads", ""):
        return {"precision": "bf16_mixed", "gradient_dtype": "fp32"}
    return {"precision": _torch_recipe(framework, stated)}


def _torch_recipe(framework: str, stated: Mapping[str, str]) -> str:
    """What DeepSpeed and PyTorch's own trainers keep their weights and states in."""
    compute, params = stated.get("compute", ""), stated.get("params", "")
    if framework == "deepspeed":
        mixed = "fp16_mixed" if params.startswith("fp16") else "bf16_mixed"
        return "bf16" if "bf16" in stated.get("master", "") else mixed
    if params.startswith("fp32"):
        return "bf16_mixed" if compute not in ("fp32", "") or "mixed" in params else "fp32"
    if "fp32" in stated.get("optimizer_states", "") and framework in ("single", "ddp"):
        return "bf16_master"
    return "bf16_autocast" if "autocast" in compute else "bf16"


def _adapter_precision(row: Row, params: str, compute: str) -> str:
    """What the parts outside the adapters rest and compute in."""
    if "fp32 for nf4" in compute and "nf4" in params:
        return "fp32"  # prepare_model_for_kbit_training without autocast
    if "baseline-peft" in text(row, "framework") and "nf4" in params:
        return "bf16_mixed"  # prepare_model_for_kbit_training under autocast
    return "bf16_autocast" if "autocast" in compute else "bf16"


def optimizer(row: Row) -> dict[str, Any]:
    """The optimizer.

    Raises:
        NotGivenError: one whose states are not counted yet.
    """
    named = text(row, "optimizer")
    if "in backward" in named and "adamw" in named:
        return {"optimizer": "adamw_8bit_in_backward" if "8bit" in named else "adamw_in_backward"}
    if "badam" in named or "lora-fa" in named:
        raise NotGivenError(f"not modelled yet: optimizer {row.get('optimizer')}")
    if "8bit" in named or "8-bit" in named:
        return {"optimizer": "adamw_8bit"}
    if "4bit" in named:
        raise NotGivenError("not modelled yet: 4-bit optimizer states")
    for known in ("muon", "sgd", "adafactor"):
        if known in named:
            return {"optimizer": known}
    return {"optimizer": "adamw_fused" if "fused" in named else "adamw"}
