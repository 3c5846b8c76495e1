"""recommend_setup: the configuration to run, and why."""

from __future__ import annotations

from typing import Final

from advisor.words import setup_text
from tools.tool import Tool

RECOMMEND_SETUP: Final = Tool(
    name="recommend_setup",
    title="Recommend a training setup",
    description=(
        "The parallel layout, recompute and offload to run a training job with, the steps that led there, "
        "alternatives with their price.\n"
        "Use when the user names a model and GPUs and asks how to train it, or whether it can be trained at all. "
        "A layout argument that is given is kept, an absent one is free.\n"
        'Example: {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "sequence_length": "8k"}'
    ),
    words=setup_text,
    examples=(
        {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "sequence_length": "8k"},
        {"model": "llama-3-8b", "hardware": "1x8 A100-80GB", "method": "lora", "framework": "fsdp2"},
    ),
    long=True,
)
