"""The time of a step as an answer shows it: speed, utilisation by named conventions, days and cost."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.placement import Place
from advisor.timing.step import StepTime, step_time
from advisor.types.answers import Time, TimePart
from advisor.types.case import Case

HOUR, DAY = 3_600, 86_400  # seconds

MFU_CONVENTION = (
    "model FLOP without recompute, attention scores as far as the mask lets them be seen, over the datasheet's dense "
    "bf16 rate; frozen weights have no gradient of their own"
)


def time_answer(case: Case, places: Mapping[int, Place] | None = None) -> Time:
    """Step time, tokens a second and utilisation; days, GPU hours and cost where the case says how far to train.

    The formulas come along at ``detail=full``.
    """
    step = step_time(case, places)
    return Time(
        step_time_s=step.seconds,
        tokens_per_s=step.tokens_per_s,
        tokens_per_s_per_gpu=step.tokens_per_s_per_gpu,
        model_flops_per_s_per_gpu=step.model_flops_per_s_per_gpu,
        mfu=step.mfu,
        mfu_convention=MFU_CONVENTION,
        mfu_whole_attention=step.mfu_whole_attention,
        mfu_6n=step.mfu_6n,
        parts=_parts(step) if case.policy.detail == "full" else (),
        **_whole_training(step),
    )


def _parts(step: StepTime) -> tuple[TimePart, ...]:
    return tuple(
        TimePart(
            name=part.name,
            seconds=part.seconds,
            hidden=part.hidden,
            formula=part.formula,
            substituted=part.substituted,
            source=part.source,
        )
        for part in step.parts
    )


def _whole_training(step: StepTime) -> dict[str, float]:
    """Days, GPU hours and cost; empty where the case does not say how many tokens to train on."""
    training = step.case.training
    if not training.train_tokens:
        return {}
    seconds = training.train_tokens / step.tokens_per_s
    hours = seconds / HOUR * step.case.layout.world
    found = {"days": seconds / DAY, "gpu_hours": hours}
    return found | ({"cost": hours * training.price_per_gpu_hour} if training.price_per_gpu_hour else {})
