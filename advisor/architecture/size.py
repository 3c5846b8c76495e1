"""A bare size such as "70B": a Llama-3-like shape of about that many parameters, labelled as a guess."""

from __future__ import annotations

import math
import re
from typing import Any

from advisor import units
from advisor.architecture.hyper_parameters import read_hyper_parameters
from advisor.architecture.parameters import count_parameters
from advisor.errors import AdvisorError
from advisor.types import ModelArchitecture

_SIZE = re.compile(r"(\d{1,6}(?:\.\d{1,4})?)\s*([mbt])", re.IGNORECASE)
_SCALE = {"m": units.MILLION, "b": units.BILLION, "t": units.TERA}

#: hidden, layers, heads, key/value heads, feed-forward width: Llama-3's published shapes, and between them Llama's
#: own proportions (head_dim 128, feed-forward 2.7-3.5 times hidden, eight key/value heads).
_LADDER = (
    (768, 12, 12, 4, 2560),
    (1024, 24, 16, 8, 3584),
    (2048, 16, 32, 8, 8192),
    (3072, 28, 24, 8, 8192),
    (4096, 32, 32, 8, 14_336),
    (5120, 40, 40, 8, 16_384),
    (6656, 60, 52, 4, 17_920),
    (8192, 80, 64, 8, 28_672),
    (12_288, 96, 96, 8, 38_912),
    (16_384, 126, 128, 8, 53_248),
    (20_480, 160, 160, 8, 65_536),
    (25_600, 200, 200, 8, 81_920),
)
_VOCAB = 128_256
_CLOSE_ENOUGH = 0.05


def parse_size(text: str) -> float | None:
    """The parameters that a size names, ``"7B"`` or ``"1.5 T"``; None when the text is not a size."""
    match = _SIZE.fullmatch(text.strip())
    return float(match[1]) * _SCALE[match[2].lower()] if match else None


def model_of_size(text: str, parameters: float) -> ModelArchitecture:
    """A Llama-3-like model of about that size: the nearest published width, its depth adapted when it is far off.

    Raises:
        AdvisorError: ``invalid_value`` for a size outside 10 million to 3 trillion parameters.
    """
    if not 10 * units.MILLION <= parameters <= 3 * units.TERA:
        detail = f"{text!r} is outside 10M to 3T parameters; give a preset name, hf_config or architecture"
        raise AdvisorError("invalid_value", detail, pointer="/model")
    model = min((_rung(*shape) for shape in _LADDER), key=lambda rung: abs(math.log(_total(rung) / parameters)))
    if abs(_total(model) / parameters - 1) > _CLOSE_ENOUGH:
        model = _deepened(model, parameters)
    note = (
        f"{text.strip()} is only a size: a Llama-3-like shape of {units.format_count(_total(model))} stands in for it"
    )
    return model.model_copy(
        update={"name": f"{text.strip()} (Llama-3-like)", "source": "size", "exact": False, "notes": (note,)}
    )


def _total(model: ModelArchitecture) -> int:
    return count_parameters(model).total


def _rung(hidden: int, layers: int, heads: int, kv_heads: int, ffn: int) -> ModelArchitecture:
    shape: dict[str, Any] = {"hidden": hidden, "layers": layers, "heads": heads, "kv_heads": kv_heads, "ffn": ffn}
    small = hidden < 4096  # noqa: PLR2004 - Llama-3.2 1B and 3B share the embedding with the head, 8B does not
    return read_hyper_parameters({**shape, "vocab": _VOCAB, "tied": small, "max_positions": 131_072})


def _deepened(model: ModelArchitecture, parameters: float) -> ModelArchitecture:
    """The same width with the number of layers that comes nearest to the size."""
    counted = count_parameters(model)
    layer = counted.per_layer[0]
    layers = max(1, round((parameters - (counted.total - layer * model.layers)) / layer))
    return model.model_copy(update={"layers": layers})
