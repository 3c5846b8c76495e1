"""What an open choice decides: the same job with one assumption changed to another plausible value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from advisor.errors import AdvisorError
from advisor.estimate import Breakdown, estimate
from advisor.resolve import resolve
from advisor.types.case import Case

#: Other values that users of the same job really run with, by what decides most (docs/accuracy.md).
ALTERNATIVES: Mapping[str, tuple[Any, ...]] = {
    "precision": ("bf16_mixed", "bf16", "bf16_autocast"),
    "loss": ("standard", "fused", "chunked"),
    "keep_logits": (True, False),
    "gradient_sync": ("every", "last"),
    "recompute": ("none", "full"),
    "optimizer": ("adamw", "adamw_fused", "adamw_8bit"),
    "implementation": ("reference", "fused"),
    "attention": ("flash", "eager"),
    "lora_dtype": ("bf16", "fp32"),
    "framework_version": ("transformers 4.45", "transformers 4.48", "transformers 5"),
    "micro_batch": (1, 2),
    "gradient_accumulation": (1, 2),
}

#: A measured peak this close to a figure is explained by it.
EXPLAINED = 0.04


@dataclass(frozen=True)
class Change:
    """One assumption changed, and the memory that follows."""

    argument: str
    value: Any
    breakdown: Breakdown


def changes(case: Case, *arguments: str) -> Iterator[Change]:
    """The case with each open choice changed in turn; those that the framework refuses are left out.

    Args:
        case: a case that remembers the arguments it came from.
        arguments: which choices to change; all that were not given when empty.
    """
    if case.arguments is None:
        return
    open_choices = [a.argument for a in case.assumptions if a.origin != "given" and a.argument in ALTERNATIVES]
    for argument in dict.fromkeys(arguments or open_choices):
        for value in ALTERNATIVES[argument]:
            breakdown = _changed(case, argument, value)
            if breakdown is not None:
                yield Change(argument, value, breakdown)


def _changed(case: Case, argument: str, value: Any) -> Breakdown | None:
    assert case.arguments is not None
    try:
        changed = resolve(case.arguments.model_copy(update={argument: value}), allow_paths=True)
    except AdvisorError:
        return None
    return estimate(changed)


def explanation(case: Case, measured_bytes: int, expected_bytes: int) -> Change | None:
    """The one change that brings the estimate closest to a measured peak; None when the estimate is close already."""
    if abs(measured_bytes / expected_bytes - 1) <= EXPLAINED:
        return None
    found = min(changes(case), key=lambda change: abs(change.breakdown.peak_bytes - measured_bytes), default=None)
    if found is None or abs(found.breakdown.peak_bytes / measured_bytes - 1) > EXPLAINED:
        return None
    return found
