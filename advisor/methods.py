"""Ways of training: what is frozen, which modules carry adapters, what a quantised base weighs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.architecture import linear_shapes
from advisor.errors import AdvisorError, nearest
from advisor.types.architecture import ModelArchitecture
from advisor.types.arguments import CaseArguments
from advisor.types.case import Training

ADAPTER_METHODS = ("lora", "dora", "qlora")
COMPUTED_METHODS = ("full", "freeze", *ADAPTER_METHODS)
#: Modules that can be trained whole beside adapters; a layer's own are not computed.
SAVED_MODULES = ("embed_tokens", "lm_head")

ATTENTION_MODULES = (
    "q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj", "query_key_value", "c_attn", "dense", "q_a_proj", "q_b_proj",
    "kv_a_proj_with_mqa", "kv_b_proj",
)  # fmt: skip
QUERY_VALUE_MODULES = ("q_proj", "v_proj", "q_b_proj", "kv_b_proj", "qkv_proj", "query_key_value", "c_attn")

# Bytes of a quantised weight, and of its scales: 4-bit blocks of 64 with an fp32 scale, or with scales quantised to
# 8 bits in blocks of 256 (QLoRA, Dettmers et al. 2023, §3); GPTQ groups of 128 with an fp16 scale and a 4-bit zero;
# int8 with one fp32 scale a row, which is nothing to three digits.
QUANTIZED_BYTES: Mapping[str, tuple[float, float]] = {
    "nf4": (0.5, 4 / 64),
    "nf4_double": (0.5, 1 / 64 + 4 / (64 * 256)),
    "gptq": (0.5, 2.5 / 128),
    "int8": (1.0, 0.0),
    "none": (0.0, 0.0),
}


def check_method(arguments: CaseArguments) -> None:
    """Refuse methods whose memory is not computed yet.

    Raises:
        AdvisorError: ``not_modelled``, with the methods that are.
    """
    method = arguments.method
    if method is not None and method not in COMPUTED_METHODS:
        detail = f"method={method!r} is not modelled yet; computed: {', '.join(COMPUTED_METHODS)}"
        raise AdvisorError("not_modelled", detail, pointer="/method", suggestions=["full"])


def check_trainable(text: str, model: ModelArchitecture) -> str:
    """``all``, or parts with commas: ``top:N``, ``bottom:N``, ``embedding``, ``positions``, ``head``.

    Raises:
        AdvisorError: another form, or N outside the model's layers.
    """
    for part in text.split(","):
        _check_part(part.strip(), model)
    return ",".join(part.strip() for part in text.split(","))


OUTER_PARTS = ("all", "embedding", "positions", "head")


def _check_part(text: str, model: ModelArchitecture) -> None:
    kind, _, count = text.partition(":")
    if text in OUTER_PARTS:
        return
    if kind in {"top", "bottom"} and count.isdecimal() and 1 <= int(count) <= model.layers:
        return
    if kind in {"top", "bottom"}:
        detail = f"trainable={text!r}: N must be a whole number from 1 to the model's {model.layers} layers"
        raise AdvisorError("invalid_value", detail, pointer="/trainable", suggestions=[f"{kind}:{model.layers // 2}"])
    detail = (
        f"trainable={text!r}: module patterns are not modelled yet; accepted: all, top:N, bottom:N, embedding, head"
    )
    raise AdvisorError("not_modelled", detail, pointer="/trainable", suggestions=["all", "top:4", "bottom:4"])


def lora_modules(targets: Iterable[str], model: ModelArchitecture) -> tuple[str, ...]:
    """The linear modules that carry adapters.

    Raises:
        AdvisorError: a name that is no module of this model.
    """
    known = tuple(dict.fromkeys(shape.name for index in (0, model.layers - 1) for shape in linear_shapes(model, index)))
    chosen: list[str] = []
    for target in targets:
        if target == "all_linear":
            chosen += [name for name in known if "expert" not in name]
        elif target == "attention":
            chosen += [name for name in known if name in ATTENTION_MODULES]
        elif target == "attention_qv":
            chosen += [name for name in known if name in QUERY_VALUE_MODULES]
        elif target in known:
            chosen.append(target)
        else:
            accepted = ("all_linear", "attention", "attention_qv", *known)
            detail = f"lora_targets: {model.name} has no module {target!r}; accepted: {', '.join(accepted)}"
            raise AdvisorError("invalid_value", detail, pointer="/lora_targets", suggestions=nearest(target, accepted))
    return tuple(dict.fromkeys(chosen))


def saved_modules(names: tuple[str, ...]) -> tuple[str, ...]:
    """The modules trained whole beside adapters.

    Raises:
        AdvisorError: ``not_modelled`` for any but the token table and the head.
    """
    for name in names:
        if name not in SAVED_MODULES:
            detail = f"lora_modules_to_save: {name!r} is not modelled yet; computed: {', '.join(SAVED_MODULES)}"
            close = nearest(name, SAVED_MODULES)
            raise AdvisorError("not_modelled", detail, pointer="/lora_modules_to_save", suggestions=close)
    return names


def quantized_bytes(quantization: str) -> tuple[float, float]:
    """Bytes of one quantised weight, and of its scales; zeros when nothing is quantised.

    Raises:
        AdvisorError: an unknown quantisation.
    """
    if quantization not in QUANTIZED_BYTES:
        detail = f"quantization={quantization!r} is not known; accepted: {', '.join(QUANTIZED_BYTES)}"
        close = nearest(quantization, QUANTIZED_BYTES)
        raise AdvisorError("invalid_value", detail, pointer="/quantization", suggestions=close)
    return QUANTIZED_BYTES[quantization]


def adapter_parameters(model: ModelArchitecture, training: Training) -> int:
    """Elements of all adapters: rank x (inputs + outputs) of each target, plus DoRA's magnitudes."""
    if not training.lora_targets:
        return 0
    magnitudes = 1 if training.method == "dora" else 0
    return sum(
        shape.copies * (training.lora_rank * (shape.in_features + shape.out_features) + magnitudes * shape.out_features)
        for index in range(model.layers)
        for shape in linear_shapes(model, index)
        if shape.name in training.lora_targets
    )
