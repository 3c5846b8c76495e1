"""estimate_memory: one case, its memory term by term."""

from __future__ import annotations

from typing import Final

from advisor.words import memory_text
from tools.tool import Tool

ESTIMATE_MEMORY: Final = Tool(
    name="estimate_memory",
    title="Estimate the memory of one training job",
    description=(
        "Exact GPU and host memory of one training job: verdict, peak against usable, every term, speed, assumptions.\n"
        "Use when the parallel layout is known or plain, and the question is whether it fits or what fills the memory; "
        "use recommend_setup to have the layout chosen.\n"
        'Example: {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "zero_stage": 3, "sequence_length": "8k"}'
    ),
    words=memory_text,
    examples=(
        {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "zero_stage": 3},
        {"model": "qwen2.5-7b", "hardware": "1 RTX-4090", "method": "qlora", "sequence_length": 2048},
    ),
)
