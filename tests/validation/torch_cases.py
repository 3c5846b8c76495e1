"""A row counted on PyTorch's own modules → the arguments of the same case."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.architecture import resolve_model
from advisor.resolve import resolve
from advisor.types import CaseArguments
from advisor.types.case import Case
from tests.validation.facts import BadCallError, fact

Arguments = dict[str, Any]

#: Vision-language wrappers whose forward pass cannot run without real images: their language model was run alone.
TEXT_ONLY = ("gemma3", "llama4")

ATTENTION = {"sdpa": "sdpa", "eager": "eager", "fa2": "flash"}
LORA_TARGETS = {"all": "all_linear", "attn": "attention", "qv": "attention_qv"}

#: Storage dtype → recipe without and with autocast to bf16.
PRECISION = {"bf16": ("bf16", "bf16_autocast"), "fp32": ("fp32", "bf16_mixed")}

#: What a row may vary. ``layers`` is already in its config; ``reentrant`` checkpoints keep the same bytes.
OPTIONS = {
    "seq", "mbs", "layers", "attn", "padded", "dtype", "autocast", "ckpt", "reentrant", "optim", "freeze",
    "lora_r", "lora_targets", "lora_dropout", "lora_fp32", "world", "reshard",
}  # fmt: skip


def case_of(options: Mapping[str, Any], config: Mapping[str, Any], **setting: Any) -> Case:
    """The case that a row describes.

    Args:
        options: what was varied, as the row spells it.
        config: the model's config.json object, with as many layers as were run.
        **setting: arguments that the kind of file adds, such as the optimizer.

    Raises:
        AdvisorError: the product refuses the case.
        BadCallError: the row has an option, or a value of one, that is not known here.
    """
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise BadCallError(f"a row has the unknown option {unknown[0]!r}; known: {', '.join(sorted(OPTIONS))}")
    if config.get("model_type") in TEXT_ONLY and "text_config" in config:
        config = config["text_config"]
    arguments = {
        "hf_config": dict(config),
        "sequence_length": fact(options, "seq", "a row"),
        "micro_batch": fact(options, "mbs", "a row"),
        "implementation": "reference",
        "loss": "standard",
        "attention": "sdpa_masked" if options.get("padded") else chosen(ATTENTION, options, "attn", "sdpa"),
        "recompute": "full" if options.get("ckpt") else "none",
        "precision": chosen(PRECISION, options, "dtype", "bf16")[bool(options.get("autocast"))],
    }
    arguments |= _adapters(options) | _frozen(options, config) | setting
    return resolve(CaseArguments(**arguments), allow_paths=False)


def chosen(table: Mapping[str, Any], options: Mapping[str, Any], name: str, absent: str) -> Any:
    """What a table gives for an option's value.

    Raises:
        BadCallError: the table does not know the value.
    """
    value = options.get(name, absent)
    if value not in table:
        raise BadCallError(f"a row has {name}={value!r}; known: {', '.join(table)}")
    return table[value]


def _adapters(options: Mapping[str, Any]) -> Arguments:
    """LoRA as PEFT sets it up: adapters in fp32 unless told otherwise."""
    if not options.get("lora_r"):
        return {}
    return {
        "method": "lora",
        "lora_rank": options["lora_r"],
        "lora_targets": (chosen(LORA_TARGETS, options, "lora_targets", "all"),),
        "lora_dtype": "fp32" if options.get("lora_fp32", True) else "bf16",
        "lora_dropout": options.get("lora_dropout"),
    }


def _frozen(options: Mapping[str, Any], config: Mapping[str, Any]) -> Arguments:
    """Half of the layers frozen: the lower half with the token table, or the upper half with the head."""
    if not options.get("freeze"):
        return {}
    model = resolve_model(model=None, hf_config=dict(config), architecture=None, allow_paths=False)
    half = model.layers // 2
    if options["freeze"] == "top":
        return {"method": "freeze", "trainable": f"bottom:{half}"}
    # A learned position table was left trainable, so gradients still pass the frozen layers.
    positions = ",positions" if model.learned_positions else ""
    return {"method": "freeze", "trainable": f"top:{model.layers - half}{positions}"}
