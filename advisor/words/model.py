"""The text of ``describe_model``: parameters by component, shapes, work and size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.units import format_bytes, format_count
from advisor.words.phrases import joined
from advisor.words.tables import table

if TYPE_CHECKING:
    from advisor.types import ModelAnswer

#: Counts that are not components of the total.
_APART: Final = {"per_layer", "total", "active", "biases", "mtp", "buffers"}


def model_text(answer: ModelAnswer) -> str:
    """The answer of ``describe_model`` as text."""
    count = answer.parameters
    size = f"{format_count(count.total)} parameters, {format_count(count.active)} active"
    exactness = "exact" if answer.exact else "a best effort"
    components = [
        (name.replace("_", " "), f"{value:,}") for name, value in count.model_dump(exclude=_APART).items() if value
    ]
    apart = {"MTP modules": count.mtp, "Buffers": count.buffers}
    work = f"{answer.flops_per_token_forward:.2e} FLOP a token, attention over 4,096 tokens"
    return joined(
        [
            [f"{answer.name} ({answer.model_type}): {size}; the count is {exactness}.", _shapes(answer)],
            table([*components, ("total", f"{count.total:,}")]),
            [f"{name}, counted apart: {value:,}" for name, value in apart.items() if value],
            [f"Forward pass: {work}. Checkpoint in bf16: {format_bytes(answer.checkpoint_bytes)}."],
            [f"Note: {note}" for note in answer.notes],
        ]
    )


def _shapes(answer: ModelAnswer) -> str:
    attention, experts = answer.architecture["attention"], answer.architecture.get("experts")
    positions = f"{answer.max_positions:,}" if answer.max_positions else "unknown"
    heads = f"{attention['heads']} heads ({attention['kv_heads']} key-value) of {attention['head_dim']}"
    routed = f", {experts['count']} experts of which {experts['top_k']} see a token" if experts else ""
    return (
        f"{answer.layers} layers, hidden {answer.hidden:,}, {heads}{routed}, vocabulary {answer.vocab:,}, "
        f"positions {positions}."
    )
