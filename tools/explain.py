"""explain: what a term, symbol, rule or number is, with figures computed for the job asked about."""

from __future__ import annotations

from typing import Final

from advisor.words import explain_text
from tools.tool import Tool

EXPLAIN: Final = Tool(
    name="explain",
    title="Explain memory, parallelism and the articles' numbers",
    description=(
        "What fills GPU memory and why: any term, symbol, rule, optimizer, parallel dimension or recompute policy, and "
        "every worked number of three articles, each with its formula, live figures, caveats and source.\n"
        "Use when asked what something is, why, or whether a known number holds; a question that no entry covers gets "
        "covered=false, never a guess.\n"
        'Example: {"question": "How much do ZeRO stages 1, 2 and 3 save for a 13B model on 8 GPUs?"}'
    ),
    words=lambda answer, _full: explain_text(answer),
    examples=(
        {"question": "Why does tensor parallelism need NVLink?"},
        {"id": "s1-ch4.5-7b-zero1", "values": {"Phi": 13e9}},
    ),
)
