"""describe_model: a model by itself."""

from __future__ import annotations

from typing import Final

from advisor.words import model_text
from tools.tool import Tool

DESCRIBE_MODEL: Final = Tool(
    name="describe_model",
    title="Describe a model",
    description=(
        "Exact parameter counts by component, FLOP per token and checkpoint size of a model.\n"
        "Use when asked how large a model is, or to check that a config.json is read correctly. "
        "Give exactly one of model, hf_config, architecture, case.\n"
        'Example: {"model": "qwen3-30b-a3b"}'
    ),
    words=lambda answer, _full: model_text(answer),
    examples=({"model": "qwen3-30b-a3b"}, {"model": "70B"}),
)
