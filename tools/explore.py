"""explore: a sweep over many cases."""

from __future__ import annotations

from typing import Final

from advisor.words import explore_text
from tools.tool import Tool

EXPLORE: Final = Tool(
    name="explore",
    title="Compare many setups",
    description=(
        "A table over every combination of some arguments: memory, verdict, speed; the values at which it stops "
        "fitting; the Pareto front of memory and speed.\n"
        "Use when several values are to be compared, or to see how a choice scales; for one limit use find_limit.\n"
        'Example: {"case": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}, '
        '"vary": {"micro_batch": "1..16 *2", "recompute": ["none", "full"]}, "where": "fits"}'
    ),
    words=lambda answer, _full: explore_text(answer),
    examples=(
        {
            "case": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"},
            "vary": {"micro_batch": "1..16 *2", "recompute": ["none", "full"]},
        },
        {
            "case": {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron"},
            "vary": {"tensor_parallel": [2, 4, 8], "sequence_length": "4096..16384 4096"},
            "where": "fits",
        },
    ),
    long=True,
    most_elsewhere={"budget_s": 20.0},
)
