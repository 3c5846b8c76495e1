"""What a stage holds outside the training step: while weights load, in evaluation, and while a checkpoint is saved.

These never decide the verdict here: they are reported beside the step's own instants, for the training micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor import phases
from advisor.estimate import StageBreakdown
from advisor.lines import Line

LOAD, EVALUATE, SAVE = "load", "evaluate", "save"

_WEIGHTS = ("weights.dense", "weights.experts", "weights.scales", "adapters.weights", "overhead.workspace")
_FORWARD_ONLY = ("loss.kept", "loss.forward", "loss.softcap", "head.norm", "head.input", "weights.cast_layer")
_GATHERED = ("gather.outer", "gather.layer")


def between_steps(stage: StageBreakdown) -> Mapping[str, int]:
    """Bytes by phase.

    ``load``: the rank's own weights. ``evaluate``: what rests between steps, one layer's forward pass and the logits.
    ``save``: what rests between steps; a checkpoint that each rank writes of its own shard gathers nothing.
    """
    kept = {*phases.RESIDENT_SLOTS, *_WEIGHTS, *_gradient_slots(stage)}
    resting = stage.held(kept, phases.OPTIMIZER)
    forward = stage.held((*_FORWARD_ONLY, *_GATHERED), phases.FORWARD) + _one_layer(stage)
    return {LOAD: stage.held(_WEIGHTS, phases.OPTIMIZER), EVALUATE: resting + forward, SAVE: resting}


def _gradient_slots(stage: StageBreakdown) -> tuple[str, ...]:
    """Gradients outlive the step only where they have a buffer of their own."""
    if not stage.place.case.training.recipe.gradient_buffer:
        return ()
    return tuple(slot for slot in stage.lines_by_slot if slot.startswith("gradients."))


def _one_layer(stage: StageBreakdown) -> int:
    """What the heaviest kind of layer would keep: without a backward pass each tensor is freed by the next layer."""
    kinds: dict[int, list[Line]] = {}
    for line in stage.lines:
        if line.term.slot in phases.LAYER_SLOTS:
            kinds.setdefault(id(line.values), []).append(line)
    return max((round(sum(line.amount for line in lines)) for lines in kinds.values()), default=0)
