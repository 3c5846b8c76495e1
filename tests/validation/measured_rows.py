"""A published measurement → the arguments of a case, as a user of that framework would give them.

What a row leaves out is left out here as well, so that the product chooses its own defaults. A row whose memory hangs
on a fact that it does not state is refused with that fact's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.validation.facts import NotGivenError
from tests.validation.measured_batch import batch
from tests.validation.measured_models import model_argument
from tests.validation.measured_states import MEGATRON, is_megatron_deepspeed, optimizer, precision, text

Row = Mapping[str, Any]

#: How the rows name a GPU → the catalog's name; matched as a part of the lower-case text, first hit wins.
GPUS = {
    "h100 96gb": "h100-96gb", "h100 (95": "h100-96gb", "h200": "h200-141gb", "h100": "h100-80gb", "h800": "h800-80gb",
    "h20": "h20-96gb", "a100-40": "a100-40gb", "a100_40": "a100-40gb", "a100 40": "a100-40gb", "a100": "a100-80gb",
    "a800": "a800-80gb", "gb300": "gb300-288gb", "b200/gb200": "b200-180gb", "gb200": "gb200-186gb",
    "b200": "b200-180gb", "tesla t4": "t4-16gb", "v100-32": "v100-32gb", "v100-16": "v100-16gb", "a5000": "rtx-a5000",
    "a6000": "rtx-a6000", "3090": "rtx-3090", "4090": "rtx-4090", "titan rtx": "rtx-3090", "mi300x": "mi300x-192gb",
    "a10g": "a10g-24gb",
}  # fmt: skip
UNUSUAL_METHODS = ("ppo", "dpo", "kto", "simpo", "rm-", "badam", "bone", "adalora", "trainable_tokens", "fwd+bwd")

#: What a run does beside training, by a part of its name.
UNUSUAL_RUNS = {
    "distill": "a teacher beside the student",
    "defer_embedding_wgrad": "logits' gradients held until the pipeline drains",
}


def arguments(row: Row) -> dict[str, Any]:
    """The arguments of the row's case.

    Raises:
        NotGivenError: with the missing fact.
    """
    method = _method(row)
    framework = framework_of(row)
    modules = "megatron" if is_megatron_deepspeed(row) else framework
    given = {
        **model_argument(row, modules),
        **_hardware(row),
        **method,
        "framework": framework,
        **precision(row, framework, method["method"]),
        **optimizer(row),
        **_kernels(row, framework),
        **_recompute(row, framework),
        **batch(row),
        **_layout(row, framework),
        **_offload(row, framework),
    }
    version = row.get("version") or (row["framework"] if "kempner" in text(row, "framework") else None)
    if version:
        given["framework_version"] = str(version)[:80]
    return {name: value for name, value in given.items() if value is not None}


# --- hardware -------------------------------------------------------------------------------------------------------

GPUS_PER_NODE = 8
A100_SMALL_GIB = 40

#: Megatron-LM's functional tests run on eight GPUs; on one node of four where their name says so.
TEST_GPUS, TEST_GPUS_OF_ONE_NODE = 8, 4


def _gpus(row: Row) -> int | None:
    """GPUs of the run; None where the row leaves them open."""
    if row.get("gpus") or not row["id"].startswith(("megatron-golden/gpt/", "megatron-golden/moe/")):
        return row.get("gpus")
    return TEST_GPUS_OF_ONE_NODE if "1node" in row["id"] else TEST_GPUS


def _hardware(row: Row) -> dict[str, Any]:
    gpus = _gpus(row) or 1
    named = text(row, "gpu") or "a100-80gb"  # the peak does not hang on the card, but a case needs one
    device = next((known for part, known in GPUS.items() if part in named), None)
    if device is None:
        raise NotGivenError(f"the GPU ({row.get('gpu')})")
    if device == "a100-80gb" and row.get("gpu_gib") == A100_SMALL_GIB:
        device = "a100-40gb"
    if gpus <= GPUS_PER_NODE:
        return {"hardware": f"1x{gpus} {device}"}
    per_node = next(size for size in (8, 6, 4, 2, 1) if gpus % size == 0)
    return {"hardware": f"{gpus // per_node}x{per_node} {device}"}


# --- method and framework -------------------------------------------------------------------------------------------


def _method(row: Row) -> dict[str, Any]:
    named = text(row, "method")
    unmodelled = next((why for part, why in UNUSUAL_RUNS.items() if part in row["id"]), None)
    if unmodelled:
        raise NotGivenError(f"not modelled yet: {unmodelled}")
    if any(part in named for part in UNUSUAL_METHODS) or "vision" in named or "operator" in named:
        raise NotGivenError(f"not modelled yet: method {row.get('method')}")
    quantised = "qlora" in named
    if "lora" not in named:
        return {"method": "full"}
    lora = row.get("lora") or {}
    found: dict[str, Any] = {"method": "qlora" if quantised else "lora", "lora_rank": lora.get("r") or 16}
    found["lora_targets"] = _targets(lora.get("targets"), str(row["model"]["name"]).lower())
    if "modules_to_save" in named or "embed" in named:
        found["lora_modules_to_save"] = ["embed_tokens", "lm_head"]
    found["lora_dtype"] = _adapter_dtype(row, lora)
    if quantised:
        stated = str(
            (row.get("precision") or {}).get("quant") or (row.get("precision") or {}).get("params") or ""
        ).lower()
        # torchao's NF4Tensor, which torchtune uses, always quantises its scales as well
        double = "double_quant=true" in stated or "double-quant" in stated or text(row, "framework") == "torchtune"
        found["quantization"] = "gptq" if "gptq" in stated else "nf4_double" if double else "nf4"
    return found


def _targets(stated: Any, model: str) -> list[str]:
    if not isinstance(stated, list) or "bigcode" in model or "santacoder" in model:
        return ["all_linear"]
    names = {str(target).rsplit(".", maxsplit=1)[-1] for target in stated}
    short = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj", "output_proj": "o_proj"}
    names = {short.get(name, name) for name in names}
    wide = {"gate", "up", "gate_proj", "up_proj", "w1", "w2"} & names or any("mlp" in name for name in names)
    return ["all_linear"] if wide or "c_attn" in names else sorted(names)


def _adapter_dtype(row: Row, lora: Mapping[str, Any]) -> str:
    precision = row.get("precision") or {}
    if lora.get("adapter_dtype") in ("fp32", "bf16", "fp16"):
        return str(lora["adapter_dtype"])
    bf16 = "bf16 adapters" in str(precision.get("params")).lower() or precision.get("grads") in ("bf16", "bfloat16")
    if bf16 or "autocast" not in str(precision.get("compute")).lower():
        return "bf16"
    return "fp32"  # PEFT's default under autocast


def framework_of(row: Row) -> str:
    """The framework whose arguments a row is given."""
    named, sharding, several = text(row, "framework"), text(row, "sharding"), (row.get("gpus") or 1) > 1
    zero = "zero" in sharding and "use-dist" not in sharding
    signs = (
        ("deepspeed", is_megatron_deepspeed(row)),
        ("torchtitan", "torchtitan" in named),
        ("megatron_fsdp", "megatron-fsdp" in sharding),
        ("deepspeed", zero and "megatron" not in named),
        ("megatron", "megatron" in named),
        ("deepspeed", not several and ("zero" in sharding or "deepspeed" in named)),
        ("single", not several),
        ("fsdp2", "fsdp2" in sharding or "automodel" in named or "fsdp2" in named),
        ("ddp", "no_shard" in sharding or "ddp" in sharding or sharding in ("", "none")),
    )
    return next((framework for framework, said in signs if said), "fsdp1")


# --- kernels, recompute, batch, layout ------------------------------------------------------------------------------


def _kernels(row: Row, framework: str) -> dict[str, Any]:
    found: dict[str, Any] = {"attention": _attention(row), "loss": _loss(row)}
    if is_megatron_deepspeed(row):
        found["implementation"] = "fused"
    if "llm-foundry" in text(row, "framework"):
        found["loss"] = found["loss"] or "fused_logits"  # its default, fused_crossentropy
    if row.get("compile"):
        found["compile"] = True
        if framework in ("torchtitan", "fsdp2", "single"):
            found["implementation"] = "fused"  # the compiler fuses what eager modules keep apart
    named = text(row, "framework")
    if "arctictraining" in text(row, "act_ckpt") and "liger" in text(row, "loss_kernel"):
        found["implementation"] = "fused"  # its Liger models take the kernels for norms and SwiGLU as well
    modules = any(part in named for part in ("transformers", "peft", "train.py"))
    if (modules and "trainer" not in named and framework in ("single", "ddp", "fsdp1")) or "kempner" in named:
        found["keep_logits"] = True  # a plain loop holds the model's output until the next step
    return found


def _attention(row: Row) -> str | None:
    stated = row.get("flash_attn")
    if '"transformer-impl": "local"' in str(row["model"].get("notes")):
        return "eager"  # Megatron's own modules have no flash attention
    if stated is None:
        return None
    if stated is False or text(row, "flash_attn") in ("false", "unfused", "eager"):
        return "eager"
    return "flash"


def _loss(row: Row) -> str | None:
    stated = text(row, "loss_kernel")
    if not stated:
        return None
    linear = "linear" in stated or "cutcross" in stated or ("liger" in stated and "cross_entropy" not in stated)
    if "tiled" in stated and (row.get("cp") or 1) == 1:
        return "standard"  # ArcticTraining's SFTTrainer.loss tiles under sequence parallel only
    if linear or "tiled" in stated:
        return "fused"
    if "chunk" in stated:
        return "chunked"
    return "fused_logits" if "fused ce" in stated or "fusion" in stated else "standard"


def _recompute(row: Row, framework: str) -> dict[str, Any]:
    stated = text(row, "act_ckpt")
    if "qwen3-30b-a3b-16h100" in row["id"]:
        return {"recompute": "none"}  # its recipe, qwen3_30b_a3b_pretrain_16gpu_h100_bf16_config
    if not stated:
        raise NotGivenError("whether activations are recomputed")
    if "unsloth" in stated:
        raise NotGivenError("not modelled yet: offloaded checkpointing of unsloth")
    if stated.startswith("full"):
        return {"recompute": "full", "recompute_modules": ["tiled_mlp"] if "tiled mlp" in stated else None}
    if not stated.startswith("selective"):
        return {"recompute": "none"}
    known = ("core_attn", "layernorm", "moe_act", "mla_up_proj", "shared_experts")
    modules = [name for name in known if name in stated]
    modules += [name for name in ("mlp", "moe") if re.search(rf"(?<![a-z_]){name}(?![a-z_])", stated)]
    if framework in MEGATRON and modules:
        return {"recompute": "modules", "recompute_modules": modules}
    if framework in ("fsdp1", "fsdp2", "ddp", "single", "deepspeed"):
        raise NotGivenError("what its selective recompute keeps")
    return {"recompute": "selective"}


def _virtual_stages(row: Row) -> int:
    """As stated, or the stages of a layout such as ``Et*3|(tt|)*6tmL`` over the pipeline's ranks."""
    layout = re.search(r'"pipeline-model-parallel-layout": "([^"]+)"', str(row["model"].get("notes")))
    if row.get("vpp") or not layout:
        return int(row.get("vpp") or 1)
    stages = re.sub(r"\(([^()]*)\)\*(\d+)", lambda repeated: repeated[1] * int(repeated[2]), layout[1])
    return max((stages.count("|") + 1) // (row.get("pp") or 1), 1)


_DEGREES = {
    "tp": "tensor_parallel", "pp": "pipeline_parallel", "cp": "context_parallel", "ep": "expert_parallel",
    "etp": "expert_tensor_parallel",
}  # fmt: skip


def _layout(row: Row, framework: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        argument: int(row[name]) for name, argument in _DEGREES.items() if row.get(name) and row[name] > 1
    }
    if found and not _gpus(row):
        raise NotGivenError("how many GPUs share the model")
    if framework in MEGATRON and row["model"].get("experts") and "bridge" not in text(row, "framework"):
        found["expert_tensor_parallel"] = row.get("etp") or row.get("tp") or 1  # Megatron-LM's own default is tp
    if found.get("pipeline_parallel", 1) > row["model"]["layers"]:
        raise NotGivenError("layers for every pipeline stage")
    if _virtual_stages(row) > 1:
        found["virtual_stages"] = _virtual_stages(row)
    sharding = text(row, "sharding")
    if "multi_dist_optimizer_instances" in row["id"]:
        found["data_parallel_replicate"] = 2  # the optimizer is divided within each of two halves of the replicas
    if "qwen3-30b-a3b-16h100" in row["id"]:
        found["moe_imbalance"] = 1.0  # its recipe forces balanced routing
    stage = re.search(r"zero-?(\d)", sharding)
    if stage and framework == "deepspeed":
        found["zero_stage"] = int(stage[1])
    if "optimizer replicated" in sharding and framework == "megatron":
        found["zero_stage"] = 0
    if "shard_grad_op" in sharding:
        found["zero_stage"] = 2
    if row.get("sp") is not None and framework in MEGATRON and (row.get("tp") or 1) > 1:
        found["sequence_parallel"] = bool(row["sp"])
    if is_megatron_deepspeed(row) and (row.get("tp") or 1) > 1:
        found["sequence_parallel"] = False  # it is older than sequence parallel
    if "kempner" in text(row, "framework") and row["model"].get("experts") and (row.get("tp") or 1) > 1:
        found["sequence_parallel"] = False  # its plan leaves routed layers whole along the sequence
    return found


def _offload(row: Row, framework: str) -> dict[str, Any]:
    stated = text(row, "offload")
    if not stated or stated == "none":
        return {}
    if "fine-grained" in stated or "layers" in stated:
        raise NotGivenError("not modelled yet: offload of single modules or layers")
    found: dict[str, Any] = {}
    if "optimizer" in stated:
        found["offload_optimizer"] = "cpu"
        share = re.search(r"fraction ([\d.]+)", stated)
        if share:
            found["offload_fraction"] = float(share[1])
    if "param" in stated:
        found["offload_parameters"] = "cpu"
        if framework.startswith("fsdp"):
            found["offload_optimizer"] = "cpu"  # CPUOffload moves parameters, gradients and optimizer together
    if "activation" in stated or "checkpoint" in stated:
        found["offload_activations"] = "cpu"
    if not found:
        raise NotGivenError(f"what is offloaded ({row['offload']})")
    return found
