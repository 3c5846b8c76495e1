"""Megatron-Bridge's ladder of a 70B under fp8: what each step saved, and what it saves by each reading of the figure.

Published for pull request 3107 in its pages on memory tuning and recompute, GB of 1e9 bytes, 32 GPUs of 80 GB.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from advisor.estimate import Breakdown, estimate
from advisor.resolve import resolve
from advisor.types import CaseArguments
from advisor.units import GB
from tests.validation.measured_predictions import after_first_iteration

BASE: Mapping[str, Any] = {
    "model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron", "sequence_length": 4096,
    "tensor_parallel": 4, "pipeline_parallel": 4, "virtual_stages": 5, "global_batch": 32,
    "precision": "fp8_weights", "gradient_dtype": "bf16", "loss": "fused",
}  # fmt: skip
PUBLISHED_BASE = 58.8

#: What a step changes, and the published peak after it.
STEPS: Mapping[str, tuple[Mapping[str, Any], float]] = {
    "pipeline stages 4 to 8": ({"pipeline_parallel": 8}, 53.2),
    "tensor parallel ranks 4 to 8": ({"tensor_parallel": 8}, 50.2),
    "MLP recompute": ({"recompute": "modules", "recompute_modules": ["mlp"]}, 55.6),
}

#: Which rank at which instant: the logs print one line a stage after the first step, and the pages do not say which.
READINGS: Mapping[str, Callable[[Breakdown], float]] = {
    "first step, first stage": lambda found: after_first_iteration(found.stages[0]),
    "first step, a middle stage": lambda found: after_first_iteration(found.stages[1]),
    "any later step, last stage": lambda found: found.stages[-1].peak_bytes,
    "any later step, first stage": lambda found: found.stages[0].peak_bytes,
}


#: What the table leaves open.
OPEN = """

By the first reading more pipeline stages and more tensor parallel save what was published within 15 %, and MLP
recompute saves nothing, for the optimizer's step binds at that instant. Published are 3.2 GB, once with and once
without recomputed attention, and 0.8 GB more than the base with recomputed norms. The base died on rank 0, so its
figure may be another rank's; a middle stage read after MLP recompute would give the 3.2 GB. Which rank was read is
not told."""


def ladder(change: Mapping[str, Any]) -> Breakdown:
    """The memory of one step of the ladder."""
    return estimate(resolve(CaseArguments(**{**BASE, **change}), allow_paths=False))


def table() -> str:
    """Peaks in GB: as published, and by each reading."""
    head = f"| Llama-3-70B, fp8, GB | published | {' | '.join(READINGS)} |\n|---|---:|" + "---:|" * len(READINGS)
    steps: Mapping[str, tuple[Mapping[str, Any], float]] = {"4 x 4 x 2, five parts": ({}, PUBLISHED_BASE), **STEPS}
    return "\n".join((head, *(_line(name, *step) for name, step in steps.items()))) + OPEN


def _line(name: str, change: Mapping[str, Any], published: float) -> str:
    found = ladder(change)
    return f"| {name} | {published} | {' | '.join(f'{read(found) / GB:.1f}' for read in READINGS.values())} |"
