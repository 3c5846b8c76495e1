"""The time of a step as an answer shows it: speed, utilisation by named conventions, days and cost."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.columnwise import Number
from advisor.placement import Place
from advisor.timing.step import StepTime, step_time
from advisor.types.answers import Time, TimePart
from advisor.types.case import Case, Training
from advisor.units import DAY, HOUR

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
        **(whole_training(case.training, case.layout.world, step.tokens_per_s) if case.training.train_tokens else {}),
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


def whole_training(training: Training, gpus: int, tokens_per_s: Number) -> dict[str, Number]:
    """Days and GPU hours of all tokens to train on, and their cost where the case says what a GPU hour costs.

    Args:
        training: how many tokens, and the price.
        gpus: of the layout.
        tokens_per_s: its speed, or a column of speeds.
    """
    seconds = training.train_tokens / tokens_per_s
    hours = seconds / HOUR * gpus
    found = {"days": seconds / DAY, "gpu_hours": hours}
    return found | ({"cost": hours * training.price_per_gpu_hour} if training.price_per_gpu_hour else {})
