"""list_catalog: what can be named in the other tools."""

from __future__ import annotations

from typing import Final

from advisor.words import catalog_text
from tools.tool import Tool

LIST_CATALOG: Final = Tool(
    name="list_catalog",
    title="List the catalog",
    description=(
        "Devices, models, optimizers, precisions, frameworks and sources, with the names the other tools accept; and "
        "the ids that explain takes.\n"
        "Use when a name was refused, or to see what is known and where a figure comes from.\n"
        'Example: {"kind": "devices", "query": "h100"}'
    ),
    words=lambda answer, _full: catalog_text(answer),
    examples=({"kind": "devices", "query": "h100"}, {"kind": "models"}),
    # What a kind holds never changes while a server runs: a gateway can keep, count and admit answers by their kind.
    headers={"kind": "Kind"},
)
