"""DualPipe's second stage: a rank also keeps the one that is as far from the pipeline's end as its own from the start.

Weights and gradients of both are held for the whole step (DeepSeek-V3 report, §3.2.1); the optimizer's states are
shared by the ranks of both directions, so that one stage's worth stays on each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from advisor.columnwise import Number, at_least, choose
from advisor.placement import Place

Counts = Mapping[str, Number]

#: What a rank holds of both stages: elements of one. Embedding and head, which face each other, are of one size.
HELD: Mapping[str, Callable[[Place], Number]] = {
    "weights.dense": lambda place: place.divided + place.replicated,
    "weights.experts": lambda place: place.experts,
    "gradients.layers": lambda place: place.divided_trained + place.replicated_trained,
    "gradients.experts": lambda place: place.experts_trained,
    "gradients.head": lambda _: 1,
    "gradients.embedding": lambda _: 1,
}


def with_opposite(place: Place, presence: Mapping[str, Counts]) -> Mapping[str, Counts]:
    """How often slots count on a rank: as on one stage, and in DualPipe with what the rank's other stage adds."""
    if place.schedule != "dualpipe":
        return presence
    held = {slot: _stages(place, elements) for slot, elements in HELD.items()}
    return {slot: _times(counts, held.get(slot, 1)) for slot, counts in presence.items()}


def _times(counts: Counts, factor: Number) -> Counts:
    return {phase: count * factor for phase, count in counts.items()}


def _stages(place: Place, elements: Callable[[Place], Number]) -> Number:
    """Both stages' elements over one's."""
    stages = place.layout.pipeline_parallel
    other = replace(place, stage=stages - 1 - place.stage)
    return choose(stages > 1, 1 + elements(other) / at_least(elements(place), 1), 1)
