"""Reads single fields of a configuration: several spellings, one type, one bound, one clear error each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from advisor import units
from advisor.errors import AdvisorError

#: Longest list that is looked at: no model comes near this many layers, and every loop over layers stays short.
MOST_LAYERS = 4096

#: How publishers spell the fields of config.json. A field that is not listed has one spelling only.
SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "num_hidden_layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "hidden_size": ("hidden_size", "n_embd", "d_model", "dim"),
    "num_attention_heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "num_key_value_heads": ("num_key_value_heads", "n_head_kv", "num_kv_heads", "n_kv_heads", "multi_query_group_num"),
    "head_dim": ("head_dim", "kv_channels"),
    "intermediate_size": ("intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff"),
    "vocab_size": ("vocab_size", "padded_vocab_size", "n_vocab"),
    "max_position_embeddings": ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"),
    "num_experts": ("num_experts", "num_local_experts", "n_routed_experts"),
    "num_experts_per_tok": ("num_experts_per_tok", "num_experts_per_token", "moe_topk", "top_k"),
    "hidden_act": ("hidden_act", "hidden_activation", "activation_function"),
    "attention_dropout": ("attention_dropout", "attn_pdrop"),
    "residual_dropout": ("resid_pdrop", "hidden_dropout", "dropout"),
    "embedding_dropout": ("embd_pdrop", "dropout"),
    "sliding_window_pattern": ("sliding_window_pattern", "_sliding_window_pattern"),
    "num_nextn_predict_layers": ("num_nextn_predict_layers", "num_mtp_modules"),
}


@dataclass(frozen=True)
class Fields:
    """A configuration object and where it stands in the request.

    Attributes:
        data: the object as it was given.
        pointer: JSON pointer of the object, for errors.
        spellings: field -> the names it may carry in ``data``, best first.
        defaults: values that the model's own code takes for a field that is absent.
        written: whether a count may also be written as text, "8k" or "4096".
    """

    data: Mapping[str, Any]
    pointer: str
    spellings: Mapping[str, Sequence[str]] = field(default_factory=lambda: SPELLINGS)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    written: bool = False

    def find(self, name: str) -> tuple[str, Any]:
        """The spelling that is present and its value; a null counts as absent and gives the default."""
        spellings = self.spellings.get(name, (name,))
        for spelling in spellings:
            value = self.data.get(spelling)
            if value is not None:
                return spelling, value
        return spellings[0], self.defaults.get(name)

    def has(self, name: str) -> bool:
        """Whether the field has a value, given or by default."""
        return self.find(name)[1] is not None

    def refuse(self, spelling: str, value: Any, accepted: str) -> AdvisorError:
        """The error for a value of the wrong type or out of bounds."""
        detail = f"{spelling} is {_shown(value)}; accepted: {accepted}"
        return AdvisorError("invalid_value", detail, pointer=f"{self.pointer}/{spelling}")

    def count(self, name: str, *, at_least: int = 1, at_most: int = 10**8) -> int:
        """A whole number that must be present.

        Raises:
            AdvisorError: ``incomplete_config`` when absent, ``invalid_value`` when not a whole number in bounds.
        """
        if not self.has(name):
            raise missing(self, [name])
        return int(self.count_or(name, None, at_least=at_least, at_most=at_most))

    def count_or(self, name: str, absent: Any, *, at_least: int = 1, at_most: int = 10**8) -> Any:
        """A whole number, or ``absent`` when the field has no value."""
        spelling, value = self.find(name)
        if value is None:
            return absent
        number = units.parse_token_count(value) if self.written and isinstance(value, str) else value
        if isinstance(number, bool) or not isinstance(number, int) or not at_least <= number <= at_most:
            raise self.refuse(spelling, value, f"a whole number from {at_least:,} to {at_most:,}")
        return number

    def share(self, name: str, absent: float) -> float:
        """A number from 0 to 1."""
        spelling, value = self.find(name)
        if value is None:
            return absent
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value) or not 0 <= value <= 1:
            raise self.refuse(spelling, value, "a number from 0 to 1")
        return float(value)

    def flag(self, name: str, absent: bool) -> bool:
        """True or false."""
        spelling, value = self.find(name)
        if value is None:
            return absent
        if not isinstance(value, bool):
            raise self.refuse(spelling, value, "true or false")
        return value

    def text(self, name: str, absent: str) -> str:
        """A piece of text."""
        spelling, value = self.find(name)
        if value is None:
            return absent
        if not isinstance(value, str):
            raise self.refuse(spelling, value, "text")
        return value

    def items(self, name: str, kind: type, *, length: int | None = None) -> tuple[Any, ...] | None:
        """A list of texts or whole numbers, of the given length where one is due; None when absent."""
        spelling, value = self.find(name)
        if value is None:
            return None
        words = f"a list of {length or ''} {'texts' if kind is str else 'whole numbers'}".replace("  ", " ")
        if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > MOST_LAYERS:
            raise self.refuse(spelling, value, words)
        if length is not None and len(value) != length:
            raise self.refuse(spelling, value, words)
        if any(type(item) is not kind for item in value):
            raise self.refuse(spelling, value, words)
        return tuple(value)

    def inside(self, name: str, *, defaults: Mapping[str, Any] | None = None) -> Fields | None:
        """The object that a field holds, with its own pointer; None when absent."""
        value = self.data.get(name)
        if value is None:
            return None
        if not isinstance(value, Mapping):
            raise self.refuse(name, value, "an object")
        return Fields(value, f"{self.pointer}/{name}", self.spellings, defaults or {})

    def with_defaults(self, defaults: Mapping[str, Any]) -> Fields:
        """The same object, with other defaults for absent fields."""
        return replace(self, defaults=defaults)


def missing(fields: Fields, names: Sequence[str]) -> AdvisorError:
    """The error that names every field that is due and absent, in the spelling that the caller uses."""
    spelled = [fields.spellings.get(name, (name,))[0] for name in names]
    if len(spelled) > 1:
        detail = f"{', '.join(spelled)} are missing; a model cannot be sized without them"
    else:
        others = fields.spellings.get(names[0], ())[1:3]
        hint = f" (also read: {', '.join(others)})" if others else ""
        detail = f"{spelled[0]} is missing{hint}; a model cannot be sized without it"
    return AdvisorError("incomplete_config", detail, pointer=fields.pointer, suggestions=spelled)


def _shown(value: Any) -> str:
    """A value as one short piece of text, made without writing out what is long or deep."""
    if isinstance(value, int) and value.bit_length() > 256:  # noqa: PLR2004 - 78 digits are enough to see
        return f"a number of {value.bit_length():,} bits"
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"a list of {len(value)}"
    return repr(value[:60] if isinstance(value, str) else value)
