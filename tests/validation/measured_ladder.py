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

#: What a step changes, the published peak after it, and the stage whose line it is by the reading below.
STEPS: Mapping[str, tuple[dict[str, Any], float, int]] = {
    "pipeline stages 4 to 8": ({"pipeline_parallel": 8}, 53.2, 0),
    "tensor parallel ranks 4 to 8": ({"tensor_parallel": 8}, 50.2, 0),
    "MLP recompute": ({"recompute": "modules", "recompute_modules": ["mlp"]}, 55.6, 1),
}

#: Which rank at which instant: the logs print one line a stage after the first step.
READINGS: Mapping[str, Callable[[Breakdown], float]] = {
    "first step, first stage": lambda found: after_first_iteration(found.stages[0]),
    "first step, a middle stage": lambda found: after_first_iteration(found.stages[1]),
    "any later step, last stage": lambda found: found.stages[-1].peak_bytes,
    "any later step, first stage": lambda found: found.stages[0].peak_bytes,
}


#: What the reading rests on.
READING = """

After the first step each stage prints its peak, and the project's own reader (scripts/performance/utils/evaluate.py at
0026ec18, get_metrics_from_logfiles) takes the first such line among the logs of all ranks, in no fixed order: a figure
is of a stage that nobody chose. The base died on rank 0, which the page names, so its line is the first stage's. Read
so, with MLP recompute on a middle stage and the others on the first, all four figures are short by the same 0.4 to
0.8 GB, and the steps are -5.6, -8.2 and -3.2 GB (published -5.6, -8.6, -3.2). The step of the optimizer binds in
each, which is why recomputing attention as well changes nothing, and why the first stage would show no effect of MLP
recompute at all: the 3.2 GB are the states of the embedding, which a middle stage does not hold. Recomputed norms do
not matter, for Transformer Engine has them inside the linear layers; their 0.8 GB more is what two equal runs differ
by."""


def ladder(change: Mapping[str, Any]) -> Breakdown:
    """The memory of one step of the ladder."""
    return estimate(resolve(CaseArguments(**{**BASE, **change}), allow_paths=False))


def table() -> str:
    """Peaks in GB: as published, and by each reading."""
    head = f"| Llama-3-70B, fp8, GB | published | {' | '.join(READINGS)} |\n|---|---:|" + "---:|" * len(READINGS)
    base = _line("4 x 4 x 2, five parts", {}, PUBLISHED_BASE)
    steps = (_line(name, change, published) for name, (change, published, _) in STEPS.items())
    return "\n".join((head, base, *steps)) + READING


def _line(name: str, change: Mapping[str, Any], published: float) -> str:
    found = ladder(change)
    return f"| {name} | {published} | {' | '.join(f'{read(found) / GB:.1f}' for read in READINGS.values())} |"
