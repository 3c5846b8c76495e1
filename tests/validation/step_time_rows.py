"""A published training run → the case it was, and the seconds of its step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.layers import even_as_possible
from advisor.resolve import resolve
from advisor.timing.step import model_flops_per_token
from advisor.types import CaseArguments
from advisor.types.case import Case
from tests.validation.facts import NotGivenError
from tests.validation.torch_cases import Arguments

Row = Mapping[str, Any]

#: A word of what ran it → our name of the framework. The first that fits.
FRAMEWORKS: Mapping[str, str] = {
    "megatron_fsdp": "megatron_fsdp",
    "zero3": "deepspeed",
    "Composer": "fsdp1",
    "fms-fsdp": "fsdp1",
    "torchtitan": "torchtitan",
    "Automodel": "fsdp2",
    "Kempner": "fsdp2",
    "Primus": "fsdp2",
    "Meg": "megatron",
    "NeMo": "megatron",
    "HAI-LLM": "megatron",
    "Moonshot": "megatron",
}
#: torch.compile fuses element-wise kernels; Automodel and Kempner run Transformer Engine's or compile.
FUSED = ("torchtitan", "fms-fsdp", "Automodel", "Kempner", "Primus")

DEVICES: Mapping[str, str] = {"H100-96GB-HBM2e-500W(Meta)": "h100-96gb"}

#: A published precision, by its first letters → ours, and whether matrices are multiplied in eight bits.
PRECISIONS: Mapping[str, tuple[str, str]] = {
    "MXFP8": ("bf16_mixed", "mxfp8_mixed"),
    "NVFP4": ("bf16_mixed", "nvfp4_mixed"),
    "FP8": ("bf16_mixed", "fp8_mixed"),
    "amp_fp8": ("bf16_mixed", "fp8_mixed"),
    "amp_bf16": ("bf16_mixed", "bf16_mixed"),
    "FP16": ("fp16_mixed", "fp16_mixed"),
    "BF16": ("bf16_mixed", "bf16_mixed"),
    "bf16": ("bf16_mixed", "bf16_mixed"),
}


def measured_seconds(row: Row, case: Case) -> float:
    """Seconds of a step: as printed, or from tokens a second, FLOP a second or utilisation.

    Raises:
        NotGivenError: the row gives no speed that can be converted.
    """
    if row.get("step_time_s"):
        return float(row["step_time_s"])
    tokens = case.training.sequence_length * case.layout.micro_batch * case.layout.gradient_accumulation
    tokens_of_a_gpu = tokens * case.layout.data_parallel / case.cluster.gpus
    if row.get("tokens_per_s_per_gpu"):
        return tokens_of_a_gpu / float(row["tokens_per_s_per_gpu"])
    rate = row.get("tflops_per_gpu") or (row.get("mfu") or 0) * row["gpu_peak_bf16_tflops"]
    if not rate:
        raise NotGivenError("no speed")
    return tokens_of_a_gpu * flops_per_token(row, case) / (rate * 10**12)


#: Sources that count a token's attention against the whole sequence: by their code, or by the size of their figures.
FULL_ATTENTION = ("NeMo long-sequence", "Megatron-LM README", "MegaScale", "Narayanan", "Korthikanti")


def flops_per_token(row: Row, case: Case) -> float:
    """FLOP of a token as the row's source counts them; "hardware" counts a forward pass made again."""
    full = row["source"].startswith(FULL_ATTENTION)
    again = 4 / 3 if str(row.get("tflops_kind", "")).startswith("hardware") else 1
    return model_flops_per_token(case, whole_attention=full) * again


def case_of(row: Row) -> Case:
    """The case of a row.

    Raises:
        NotGivenError: the row gives no layer sizes, no batch or no layout.
    """
    precision, matrices = next(names for start, names in PRECISIONS.items() if row["precision"].startswith(start))
    framework = next(name for word, name in FRAMEWORKS.items() if word in f"{row['dp_sharding']} {row['framework']}")
    if "PURE" in row["dp_sharding"]:
        precision = matrices = "bf16"
    case = resolve(CaseArguments(**_arguments(row, framework, precision)), allow_paths=False)
    training = case.training.model_copy(update={"precision": matrices})
    return case.model_copy(update={"training": training})


def _arguments(row: Row, framework: str, precision: str) -> Arguments:
    sharded = framework not in ("megatron", "single")
    gpus_per_node = min(row.get("gpus_per_node") or 8, row["num_gpus"])
    single = row["num_gpus"] == 1
    given: Arguments = {
        "architecture": architecture(row["hyperparameters"]),
        "hardware": f"{row['num_gpus'] // gpus_per_node}x{gpus_per_node} {device(row)}",
        "framework": "single" if single else framework,
        "precision": precision,
        "sequence_length": row["seq_len"],
        "tensor_parallel": row["tp"],
        "pipeline_parallel": row["pp"],
        "virtual_stages": row["vp"] if row.get("vp") and row["pp"] > 1 else 1,
        "context_parallel": row["cp"],
        "expert_parallel": row["ep"],
        "expert_tensor_parallel": row.get("etp") or 1,
        "micro_batch": row.get("mbs") or 1,
        "moe_imbalance": 1.0,
        "compile": any(word in row["framework"] for word in FUSED),
        "loss": "standard",
        **recompute(row),
    }
    layers, stages = row["hyperparameters"]["num_layers"], row["pp"]
    if stages > 1 and layers % stages:
        given["stage_layers"] = stage_layers(layers, stages, row["hyperparameters"].get("mtp_layers") or 0)
    if row.get("gbs"):
        given["gradient_accumulation"] = max(row["gbs"] // ((row.get("mbs") or 1) * row["dp"]), 1)
    if sharded and not single:
        given["zero_stage"] = 2 if "zero2" in row["dp_sharding"] else 3
    elif row["dp_sharding"] == "none" and not single:
        given["zero_stage"] = 0
    if "DualPipe" in row["framework"]:
        given["pipeline_schedule"] = "dualpipe"
    if "Megatron-LM 202" in row["framework"]:
        given["attention"] = "eager"  # before flash attention
    if row["task"] == "lora":
        given |= {"method": "lora", "lora_rank": 16}
    return given


def stage_layers(layers: int, stages: int, predictors: int) -> tuple[int, ...]:
    """Layers of each stage where they do not divide: recipes count embedding, loss and predictors as layers."""
    split = list(even_as_possible(layers + 2 + predictors, stages))
    split[0] -= 1
    split[-1] -= 1 + predictors
    return tuple(split)


def device(row: Row) -> str:
    """The catalog's name of the row's GPU."""
    return DEVICES.get(row["gpu_type"], row["gpu_type"])


def recompute(row: Row) -> Arguments:
    """What the row recomputes; nothing where it does not say."""
    text = str(row.get("recompute") or "none")
    if text.startswith("full:"):
        return {"recompute": "blocks", "recompute_layers": int("".join(filter(str.isdigit, text)))}
    if text.startswith("full"):
        return {"recompute": "full"}
    if text.startswith("selective:"):
        modules = text.removeprefix("selective:").replace("RMSNorm", "layernorm").replace("LayerNorm", "layernorm")
        modules = modules.replace("MLA up-proj", "mla_up_proj").replace("SwiGLU", "activation")
        names = [name.strip() for name in modules.split(",")]
        known = ("core_attn", "layernorm", "activation", "moe_act", "mla_up_proj", "mlp", "moe")
        return {"recompute_modules": [name for name in names if name in known]}
    if text.startswith("selective") and "fms" in row["framework"]:
        return {"recompute": "blocks", "recompute_layers": row["hyperparameters"]["num_layers"] // 2}
    return {"recompute": "selective" if text.startswith("selective") else "none"}


#: Published size → our field of architecture.
SIZES: Mapping[str, str] = {
    "num_layers": "layers", "hidden": "hidden", "heads": "heads", "kv_heads": "kv_heads", "head_dim": "head_dim",
    "ffn_hidden": "ffn", "vocab": "vocab", "gated_mlp": "gated", "num_experts": "experts", "top_k": "top_k",
    "moe_ffn": "expert_ffn", "shared_experts": "shared_experts", "first_dense_layers": "first_dense_layers",
    "q_lora_rank": "q_lora_rank", "kv_lora_rank": "kv_lora_rank", "qk_nope": "qk_nope_head_dim",
    "qk_rope": "qk_rope_head_dim", "v_head_dim": "v_head_dim", "mtp_layers": "mtp_layers", "tied_embeddings": "tied",
}  # fmt: skip


def architecture(sizes: Mapping[str, Any]) -> Arguments:
    """The model by its sizes.

    Raises:
        NotGivenError: the row gives no layer sizes.
    """
    if not sizes.get("num_layers") or not (sizes.get("ffn_hidden") or sizes.get("num_experts")):
        raise NotGivenError("no layer sizes")
    given = {ours: sizes[name] for name, ours in SIZES.items() if sizes.get(name) is not None}
    if sizes.get("num_experts") and not sizes.get("first_dense_layers"):
        given.pop("ffn", None)
        given["gated"] = True
    if not given.get("gated", True):
        given["norm"] = "layernorm"
    if "SWA" in str(sizes.get("attention")):
        given["sliding_window"] = 128
    return given
