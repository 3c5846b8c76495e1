"""A public report of a job → the arguments of its case: what it states, what it tried, and what it leaves open.

Reports are written in people's words, so a field is read by the words that people use. What decides memory and is not
stated is *open*: it takes each of a few plausible values, and the verdict counts as decided only where all agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from advisor.architecture.presets import find_preset
from advisor.catalog.devices import find_device
from advisor.errors import AdvisorError
from advisor.units import GB, GIB
from tests.validation.facts import NotGivenError

Config = Mapping[str, Any]
Arguments = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """What a report says of its job.

    Attributes:
        given: the arguments that it states.
        tried: other values that it states, such as a longer sequence or offload; each replaces some of ``given``.
        unstated: argument → plausible values, for what decides memory and is not stated.
        least: why our figure is only the least that the job takes; empty where it is the whole. Then only a misfit
            is a verdict.
    """

    given: Arguments
    tried: tuple[Arguments, ...] = ()
    unstated: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    least: str = ""


def job(config: Config) -> Job:
    """The job of a report's ``config``.

    Raises:
        NotGivenError: a fact without which there is no case, or something that is not modelled.
    """
    method = _method(config)
    gpus = _gpus(config)
    framework = _framework(config, max(gpus))
    alternatives = {
        "hardware": _hardware(config, gpus),
        "sequence_length": _lengths(config),
        "offload": _offload(text(config, "offload"), text(config, "recompute")),
    }
    given = {**_model(config), **method, **framework, **_kernels(config), **_batch(config), **_layout(config)}
    given |= {name: values[0] for name, values in alternatives.items() if values}
    tried = tuple({name: value} for name, values in alternatives.items() for value in values[1:])
    unstated = {name: values for name, values in _PLAUSIBLE.items() if given.get(name) is None}
    return Job(_flat(given), tuple(_flat(change) for change in tried), unstated, _why_least(config))


#: Plausible values of what decides most and is often left out, the least memory first.
_PLAUSIBLE: Mapping[str, tuple[Any, ...]] = {
    "sequence_length": (1024, 8192),
    "micro_batch": (1, 4),
    "recompute": ("full", "none"),
    "framework": ("ddp", "fsdp2"),  # what a trainer does that is told nothing, and what it can do
}


def text(config: Config, name: str) -> str:
    """A field as lower-case text; empty when it is absent."""
    return str(config.get(name) or "").lower()


def numbers(words: str) -> list[int]:
    """The counts in a text, ``8k`` and ``1M`` included."""
    found = re.findall(r"(?<![\w.])~?>?(\d+(?:\.\d+)?)([km]?)\b", words)
    return [int(float(number) * {"": 1, "k": 1024, "m": 1024**2}[suffix]) for number, suffix in found]


def _flat(change: Arguments) -> Arguments:
    """Hardware and offload are several arguments each."""
    plain = {name: value for name, value in change.items() if value is not None and not isinstance(value, dict)}
    return plain | {
        name: value for group in change.values() if isinstance(group, dict) for name, value in group.items()
    }


# --- model ----------------------------------------------------------------------------------------------------------

#: What a name says of tuning and packaging rather than of shape.
_TAIL = re.compile(
    r"(?:[-_ ](?:\d{4}|bnb|[48]bit|4-bit|awq|gptq|thinking|instruct|chat|base|it|hf|vl))+$", re.IGNORECASE
)
_SIZE = re.compile(r"(?<![A-Za-z\d.])(\d+(?:\.\d+)?)\s*b\b", re.IGNORECASE)
_ACTIVE = re.compile(r"\d+x\d+b|a\d+(?:\.\d+)?b", re.IGNORECASE)


def _model(config: Config) -> Arguments:
    """The catalog's model, or a dense one of the size that the name tells."""
    stated = re.split(r" ?[(;,]| / | vs ", str(config.get("model") or ""))[0].strip()
    for name in (stated, _TAIL.sub("", stated), _student(stated)):
        known = find_preset(name) if name else None
        if known:
            return {"model": known}
    if _ACTIVE.search(stated):
        raise NotGivenError(f"the shape of {stated}: experts are not told by a size")
    size = _SIZE.search(stated.replace("-", " ").replace("_", " "))
    if size is None and not config.get("params_b"):
        raise NotGivenError("the model's size")
    return {"model": f"{size[1] if size else config['params_b']}B"}


def _student(name: str) -> str:
    """The base of a distilled model: DeepSeek-R1's were Qwen2.5 and Llama-3.1 or 3.3 (its model cards)."""
    base = name.rsplit("Distill-", 1)[-1] if "Distill-" in name else ""
    return base.replace("Qwen-", "Qwen2.5-").replace("Llama-", "Llama-3.1-")


def _why_least(config: Config) -> str:
    """What the product does not count of this job."""
    if config.get("vision") or re.search(r"[-\d]vl|vision", text(config, "model")):
        return "images and what the vision tower keeps are not counted"
    optimizers = f"{text(config, 'method')} {text(config, 'optimizer')}"
    return "low-rank optimizer states are not counted" if "galore" in optimizers else ""


# --- hardware -------------------------------------------------------------------------------------------------------

_MEMORY = re.compile(r"(\d+(?:\.\d+)?) ?g(?:i?b)")
_GPUS_PER_NODE = 8


def _gpus(config: Config) -> list[int]:
    """How many GPUs, and the other count where the report compares two."""
    stated = (config.get("gpus") or {}).get("count")
    words = str(stated or "").lower()
    found = numbers(words.replace("-", " "))
    if not found:
        raise NotGivenError("the number of GPUs")
    compared = re.fullmatch(r"\d+ ?- ?\d+", words) or "fail" in words
    return found[:2] if compared else found[:1]


def _hardware(config: Config, counts: Sequence[int]) -> list[Arguments]:
    gpus = config["gpus"]
    device, memory = _device(str(gpus.get("type") or ""))
    nodes = gpus.get("nodes") or 1
    host = config.get("host_ram_gb")
    beside = {"gpu_memory_gib": memory, "cpu_memory_gib": numbers(str(host))[0] * GB / GIB if host else None}
    lines = []
    for count in counts:
        per_node = count // nodes if nodes > 1 else count
        whole = f"{nodes}x{per_node}" if nodes > 1 else f"1x{count}" if count <= _GPUS_PER_NODE else str(count)
        lines.append({"hardware": f"{whole} {device}", **beside})
    return lines


def _device(stated: str) -> tuple[str, float | None]:
    """A GPU of the catalog; or, where only a size is told, any GPU with that much memory."""
    named = re.split(r" ?[(;]", stated)[0].strip()
    for name in (named, re.sub(r"[- ]\d+ ?GB$", "", named)):
        try:
            return find_device(name).name, None
        except AdvisorError:
            continue
    sizes = _MEMORY.findall(stated.lower())
    if not sizes:
        raise NotGivenError("the GPU" + (f" ({stated})" if stated else ""))
    return "a100-80gb", float(sizes[-1])


# --- method, framework, precision -----------------------------------------------------------------------------------

_OTHER_METHODS = re.compile(r"ppo|dpo|grpo|kto|gkd|distill|embedding|reinforce|reward|rlhf|_rl|agentic")
#: Trainers that recompute activations unless told not to (model_args.py of LLaMA-Factory, base_args of ms-swift).
_RECOMPUTING = ("llama-factory", "ms-swift", "swift")
_LOW_PRECISION = re.compile(r"fp8|nvfp4|mxfp8")


def _method(config: Config) -> Arguments:
    stated = text(config, "method")
    if _OTHER_METHODS.search(stated):
        raise NotGivenError(f"not modelled yet: method {config['method']}")
    precision = f"{text(config, 'precision')} {stated}"
    if "lora" not in stated:
        return _full(stated)
    quantised = "qlora" in stated or "int8" in precision
    found: Arguments = {"method": "qlora" if quantised else "lora"}
    if config.get("lora_rank"):
        found["lora_rank"] = int(numbers(str(config["lora_rank"]))[0])
    if text(config, "lora_targets") in ("attention", "all_linear"):
        found["lora_targets"] = [text(config, "lora_targets")]
    if quantised:
        kinds = (("int8", "int8"), ("gptq", "gptq"), ("awq", "gptq"), ("double", "nf4_double"))
        found["quantization"] = next((ours for part, ours in kinds if part in precision), "nf4")
    return found


def _full(stated: str) -> Arguments:
    """Layer-wise updates free each gradient at once: at least one layer's is there."""
    return {"method": "freeze", "trainable": "top:1"} if "layerwise" in stated else {"method": "full"}


def _framework(config: Config, gpus: int) -> Arguments:
    named, fsdp = text(config, "framework"), text(config, "fsdp")
    if "no layer" in fsdp:
        raise NotGivenError("not modelled yet: FSDP that does not wrap the layers")
    if _LOW_PRECISION.search(text(config, "precision")):
        raise NotGivenError("not modelled yet: saved tensors in fp8 or fp4")
    signs = (
        ("megatron_fsdp", "megatron-fsdp" in named),
        ("megatron", "megatron" in named),
        ("torchtitan", "torchtitan" in named),
        ("deepspeed", bool(config.get("zero"))),
        ("single", gpus == 1),
        ("fsdp2", "torchtune" in named or "2" in fsdp or bool(_layout(config))),
        ("fsdp1", bool(fsdp) or "fsdp" in named),
        ("ddp", "ddp" in named),
    )
    name = next((framework for framework, said in signs if said), None)
    return {"framework": name, **_precision(config, name), **_zero(config, name)}


def _zero(config: Config, framework: str | None) -> Arguments:
    stages = numbers(text(config, "zero").replace("/", " "))
    return {"zero_stage": stages[-1]} if stages and framework == "deepspeed" else {}


def _precision(config: Config, framework: str | None) -> Arguments:
    """Trainers' bf16 means mixed precision; pure is said so, and is torchtune's own."""
    stated = text(config, "precision")
    if "lora" in text(config, "method") or not stated:
        return {}
    if "pure" in stated or (framework == "fsdp2" and stated.startswith("bf16")):
        return {"precision": "bf16"}
    return {"precision": "fp16_mixed" if stated.startswith("fp16") else "bf16_mixed"}


_OPTIMIZERS = (
    ("8bit", "adamw_8bit"),
    ("adafactor", "adafactor"),
    ("muon", "muon"),
    ("lion", "lion"),
    ("galore", "sgd"),
)


def _kernels(config: Config) -> Arguments:
    optimizers = f"{text(config, 'optimizer')} {text(config, 'method')}".split("/")[-1]
    optimizer = next((ours for part, ours in _OPTIMIZERS if part in optimizers), None)
    attention, loss = text(config, "attention"), text(config, "loss")
    return {
        "optimizer": optimizer,
        "attention": "eager" if "eager" in attention else "flash" if attention else None,
        "loss": "fused" if "fused" in loss else "chunked" if "chunk" in loss else None,
        **_recompute(config),
    }


def _recompute(config: Config) -> Arguments:
    stated = text(config, "recompute")
    says_nothing = not stated or "default" in stated or "given" in stated
    if says_nothing:
        recomputes = any(name in text(config, "framework") for name in _RECOMPUTING)
        return {"recompute": "full"} if recomputes else {}
    if "core_attn" in stated:
        return {"recompute": "modules", "recompute_modules": ["core_attn"]}
    return {"recompute": "none" if stated.startswith(("none", "off")) else "full"}


# --- batch, layout, offload -----------------------------------------------------------------------------------------


def _lengths(config: Config) -> list[int]:
    """The sequence length, and a second one where the report says that one runs and the other fails."""
    words = text(config, "seq")
    found = numbers(words.replace("-", " "))
    return found[:2] if "fail" in words else found[:1]


def _batch(config: Config) -> Arguments:
    named = (("mbs", "micro_batch"), ("ga", "gradient_accumulation"))
    return {ours: found[0] for theirs, ours in named if (found := numbers(text(config, theirs)))}


_DEGREES = (
    ("tp", "tensor_parallel"), ("pp", "pipeline_parallel"), ("cp", "context_parallel"), ("ep", "expert_parallel"),
    ("etp", "expert_tensor_parallel"), ("vpp", "virtual_stages"),
)  # fmt: skip


def _layout(config: Config) -> Arguments:
    found: Arguments = {}
    for theirs, ours in _DEGREES:
        degrees = numbers(text(config, theirs).replace("->", " "))
        if degrees:
            found[ours] = degrees[0] * 2 if text(config, theirs).startswith(">") else degrees[0]
    return found


def _offload(stated: str, recompute: str) -> list[Arguments]:
    """What is offloaded; first without and then with it, where the report compares the two."""
    checkpoints = {"offload_activations": "cpu"} if "offload" in recompute else {}
    if not stated or stated in ("none", "unclear", "varied"):
        return [checkpoints] if checkpoints else []
    target = "nvme" if stated.startswith("nvme") else "cpu"
    only_optimizer = "param" not in stated and ("optimizer" in stated or "adam" in stated)
    moved = {"offload_optimizer": target} | ({} if only_optimizer else {"offload_parameters": target})
    compared = stated.startswith("none vs") or "slowly" in stated
    return [{}, moved] if compared else [moved]
