"""An answer under an article's profile: its own arithmetic, the conflicts it meets, and the exact figures beside it."""

from __future__ import annotations

from advisor.answer import answer, describe
from advisor.articles import Conflict, conflicts
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from advisor.resolve import resolve
from advisor.types.answers import MemoryAnswer
from advisor.types.arguments import CaseArguments
from advisor.types.case import Case
from advisor.units import format_bytes


def answer_by_profile(arguments: CaseArguments, *, allow_paths: bool) -> MemoryAnswer:
    """The answer that an article gives, which says so first.

    Raises:
        AdvisorError: the arguments cannot be understood, or the article has no formula for one.
    """
    case = resolve(arguments, allow_paths=allow_paths)
    computed = describe(estimate(case))
    said, *warnings = computed.warnings
    opening = f"{said}: {format_bytes(computed.peak_bytes)} here, {_exact(arguments, allow_paths)}"
    met = tuple(f"{each.id} {each.title}: {each.said}. {each.fact}" for each in conflicts_met(case))
    return computed.model_copy(update={"warnings": (opening, *warnings, *met), "evidence": "assumed", "next_calls": ()})


def conflicts_met(case: Case) -> tuple[Conflict, ...]:
    """The conflicts that this case touches under its profile."""
    return tuple(
        each for each in conflicts().values() if case.policy.profile in each.articles and _in_use(each.when, case)
    )


def _in_use(when: str, case: Case) -> bool:
    """``"tensor_parallel"``: the argument is not at rest; ``"recompute:full"``: it has that value."""
    name, _, value = when.partition(":")
    if not name:
        return True
    used = {
        "model": case.model.name,
        "experts": "experts" if case.model.experts else "",
        "optimizer": case.training.optimizer.name,
        "precision": case.training.precision,
        "method": case.training.method,
        "framework": case.training.framework,
        "attention": case.training.attention,
        "quantization": case.training.quantization,
        **case.layout.model_dump(mode="json"),
    }[name]
    if value:
        return str(used).startswith(value)
    return used not in (1, 0, False, "none", "", None)


def _exact(arguments: CaseArguments, allow_paths: bool) -> str:
    """The exact peak of the same job, or of the nearest one that frameworks allow: ZeRO-1 instead of a higher stage."""
    plain = arguments.model_copy(update={"profile": None})
    try:
        return f"exact {_peak(plain, allow_paths)}"
    except AdvisorError as error:
        refused = f"no such layout in practice ({error.detail})"
    try:
        lower = plain.model_copy(update={"zero_stage": 1})
        return f"{refused}; exact with zero_stage=1: {_peak(lower, allow_paths)}"
    except AdvisorError:
        return refused


def _peak(arguments: CaseArguments, allow_paths: bool) -> str:
    exact = answer(resolve(arguments, allow_paths=allow_paths))
    return f"{format_bytes(exact.peak_bytes)} ({exact.verdict})"
