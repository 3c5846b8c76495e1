"""How long a question takes through the Python functions, once the process is warm."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from functools import partial
from typing import Any

import advisor
from benchmarks.measure import Result, durations, median_seconds

ESTIMATES: dict[str, dict[str, Any]] = {
    "llama-3-8b on 8 GPUs": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"},
    "llama-3-70b, tensor 4, pipeline 4": {
        "model": "llama-3-70b", "hardware": "4x8 H100-80GB", "tensor_parallel": 4, "pipeline_parallel": 4,
    },
    "deepseek-v3 (61 layers), FSDP2 on 512 GPUs": {
        "model": "deepseek-v3", "hardware": "64x8 H800-80GB", "framework": "fsdp2",
    },
    "deepseek-v3 (61 layers), tensor 2, pipeline 16, experts 16": {
        "model": "deepseek-v3", "hardware": "64x8 H800-80GB", "tensor_parallel": 2, "pipeline_parallel": 16,
        "expert_parallel": 16,
    },
}  # fmt: skip
SEARCHES: dict[str, dict[str, Any]] = {
    "llama-3-8b on 8 GPUs": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"},
    "llama-3-70b on 32 GPUs": {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "sequence_length": "8k"},
    "llama-3-70b on 1,024 GPUs": {"model": "llama-3-70b", "hardware": "128x8 H100-80GB", "sequence_length": "8k"},
    "deepseek-v3 on 2,048 GPUs": {"model": "deepseek-v3", "hardware": "256x8 H800-80GB"},
}


def estimates() -> Iterator[Result]:
    """One layout judged and explained; the machine's other work can only add to the fastest call."""
    for name, arguments in ESTIMATES.items():
        taken = [second * 1000 for second in durations(partial(advisor.estimate_memory, **arguments), runs=300)]
        measured = f"{statistics.median(taken):,.1f} ms median, {min(taken):,.1f} ms fastest of {len(taken)}"
        yield Result(f"estimate_memory, {name}", measured)


def searches() -> Iterator[Result]:
    """All layouts searched, the best one explained."""
    for name, arguments in SEARCHES.items():
        taken = median_seconds(partial(advisor.recommend_setup, **arguments), runs=3)
        looked_at = advisor.recommend_setup(**arguments).searched.layouts
        yield Result(f"recommend_setup, {name}", f"{taken:,.2f} s", f"{looked_at:,} layouts looked at")
