"""find_limit: how far a job can go, or how small its machine can be."""

from __future__ import annotations

from typing import Final

from advisor.words import limit_text
from tools.tool import Tool

FIND_LIMIT: Final = Tool(
    name="find_limit",
    title="Find the limit of a job",
    description=(
        "The largest micro_batch or sequence_length, the fewest gpus or the smallest device that still fits; what "
        "stops it, and the next limit with one lever pulled.\n"
        "Use when asked how long, how large, how many or how few. micro_batch and sequence_length keep the case's "
        "layout; gpus and device search for one.\n"
        'Example: {"case": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}, "of": "sequence_length"}'
    ),
    words=lambda answer, _full: limit_text(answer),
    examples=(
        {"case": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"}, "of": "sequence_length"},
        {"case": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "method": "lora"}, "of": "gpus"},
    ),
    long=True,
)
