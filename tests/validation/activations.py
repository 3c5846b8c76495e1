"""Bytes that one forward pass keeps for the backward pass, against what autograd saves in the real modules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from advisor import phases
from advisor.estimate import Breakdown, estimate
from tests.validation.comparison import Comparison, compare, error_at, median_error, print_worst, within
from tests.validation.facts import fact, read_facts
from tests.validation.torch_cases import case_of

#: What autograd holds at the end of the forward pass: not weights, nor the logits that the loss is about to free.
SAVED_SLOTS = {
    *phases.LAYER_SLOTS, "checkpoint.input", "head.norm", "head.input", "loss.kept", "loss.softcap",
    "weights.cast_copies", "weights.cast_head",
}  # fmt: skip


def run(path: Path) -> dict[str, Any]:
    """Compares every case of the file, prints the worst and returns how close they are."""
    rows = comparisons(path)
    print_worst(rows, "saved by autograd")
    return {
        "n": len(rows),
        "within_2_percent": within(rows, 0.02),
        "within_5_percent": within(rows, 0.05),
        "median_error": median_error(rows),
        "max_error": error_at(rows, 1),
    }


@cache
def comparisons(path: Path) -> tuple[Comparison, ...]:
    """One row a case: bytes saved in one forward pass."""
    facts = read_facts(path, "configs", "cases")
    return tuple(_comparison(name, case, facts["configs"]) for name, case in facts["cases"].items())


def _comparison(name: str, case: Mapping[str, Any], configs: Mapping[str, Any]) -> Comparison:
    options = fact(case, "options", name)
    config = fact(configs, fact(case, "config", name), "configs")
    setting = {"framework": "single", "hardware": "1 H100-80GB"}
    return compare(
        name,
        group_of(options),
        fact(case, "saved_total", name),
        lambda: saved_bytes(estimate(case_of(options, config, **setting))),
    )


def group_of(options: Mapping[str, Any]) -> str:
    """What the row is an example of, by its rarest option."""
    kinds = {
        "lora_r": "LoRA",
        "freeze": "partly frozen",
        "padded": "padded batch",
        "autocast": "autocast",
        "ckpt": "full recompute",
    }
    usual = {"eager": "eager attention", "fa2": "flash attention"}.get(options.get("attn", ""), "sdpa attention")
    return next((kind for option, kind in kinds.items() if options.get(option)), usual)


def saved_bytes(breakdown: Breakdown) -> int:
    """What autograd saves in one forward pass, by our terms."""
    lines = breakdown.stages[0].lines
    return sum(line.at(phases.FORWARD) for line in lines if line.term.slot in SAVED_SLOTS)
