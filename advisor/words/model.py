"""The text of ``describe_model``: parameters by component, work and size."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor import units
from advisor.units import format_bytes
from advisor.words.phrases import joined
from advisor.words.tables import table

if TYPE_CHECKING:
    from advisor.types import ModelAnswer


def model_text(answer: ModelAnswer, full: bool = False) -> str:
    """The answer of ``describe_model`` as text; ``full`` adds the architecture."""
    counts = answer.parameters.model_dump(exclude={"per_layer", "total", "active", "biases", "mtp", "buffers"})
    rows = [(name.replace("_", " "), f"{count:,}") for name, count in counts.items() if count]
    apart = [
        f"{label}, counted apart: {count:,}"
        for label, count in (("MTP modules", answer.parameters.mtp), ("Buffers", answer.parameters.buffers))
        if count
    ]
    exactness = "exact" if answer.exact else "a best effort"
    blocks = [
        [
            (
                f"{answer.name} ({answer.model_type}): {units.format_count(answer.parameters.total)} parameters, "
                f"{units.format_count(answer.parameters.active)} active; the count is {exactness}."
            ),
            (
                f"{answer.layers} layers, hidden {answer.hidden:,}, vocabulary {answer.vocab:,}, "
                f"positions {answer.max_positions or 'unknown'}."
            ),
        ],
        table([*rows, ("total", f"{answer.parameters.total:,}")]),
        apart,
        [
            (
                f"Forward pass: {answer.flops_per_token_forward:.2e} FLOP a token, attention over 4,096 tokens. "
                f"Checkpoint in bf16: {format_bytes(answer.checkpoint_bytes)}."
            ),
        ],
        [f"Note: {note}" for note in answer.notes],
        [f"{name}: {value}" for name, value in answer.architecture.items()] if full else [],
    ]
    return joined(blocks)
