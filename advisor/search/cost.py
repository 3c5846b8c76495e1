"""What a layout costs: the GPU time of a token, by the timing model, weighed by a site's preferences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.constraints import expression
from advisor.constraints.facts import AnyLayout, FactsOf
from advisor.constraints.rulebook import overlay
from advisor.timing import step_seconds, step_time
from advisor.types.columns import Columns

if TYPE_CHECKING:
    from advisor.types.case import Case


def total(case: Case, layout: AnyLayout) -> Any:
    """GPU seconds of a token with a layout, or with each of some columns; a site's preferences multiply them."""
    sequences = layout.micro_batch * layout.gradient_accumulation * layout.data_parallel
    gpu_time = seconds(case, layout) * case.cluster.gpus
    cost = gpu_time / (sequences * case.training.sequence_length)
    names = FactsOf(case, layout)
    for preference in overlay(case.policy.rules).prefer:
        holds = expression.read(preference.when)(names)
        cost = cost * _where(holds, preference.factor)
    return cost


def seconds(case: Case, layout: AnyLayout) -> Any:
    """Seconds of one optimizer step."""
    if isinstance(layout, Columns):
        return step_seconds(case, layout)
    return step_time(case.model_copy(update={"layout": layout})).seconds


def share(case: Case, parts: tuple[str, ...]) -> float | None:
    """The share of a step that these parts of it take; None for no parts."""
    if not parts:
        return None
    step = step_time(case)
    own = sum(part.seconds for part in step.parts if part.name in parts and not part.hidden)
    return round(own / step.seconds, 4)


def _where(condition: Any, factor: float) -> Any:
    if isinstance(condition, (bool, int)):
        return factor if condition else 1.0
    import numpy as np  # noqa: PLC0415 - only columns come this far

    return np.where(condition, factor, 1.0)
