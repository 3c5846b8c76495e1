"""What the work of one call may cost, and what it left out when that was spent.

A door sets the budget; the rooms that work piece by piece ask between the pieces. Where no door has set one, nothing is
ever left out. It is processor time of the calling thread, so that a busy machine changes no answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from math import inf
from typing import Final

from advisor.errors import AdvisorError


@dataclass(frozen=True)
class _Budget:
    seconds: float = inf
    ends: float = inf
    left_out: dict[str, None] = field(default_factory=dict)  # in the order in which it was left out, each once


_ENDLESS: Final = _Budget()
_CURRENT: Final[ContextVar[_Budget]] = ContextVar("budget", default=_ENDLESS)


@contextmanager
def within(seconds: float | None) -> Iterator[None]:
    """Let the work inside cost so many seconds of processor time; any number when None."""
    token = _CURRENT.set(_ENDLESS if seconds is None else _Budget(seconds, time.thread_time() + seconds))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def seconds_left() -> float:
    """What may still be spent; infinite without a budget."""
    return max(_CURRENT.get().ends - time.thread_time(), 0.0)


def is_spent_before(work: str) -> bool:
    """Whether the budget is spent; then ``work`` is remembered as left out."""
    budget = _CURRENT.get()
    if time.thread_time() < budget.ends:
        return False
    budget.left_out[work] = None
    return True


def refuse_when_spent(work: str) -> None:
    """For work without which there is no answer.

    Raises:
        AdvisorError: ``beyond_budget`` when the budget is spent.
    """
    if is_spent_before(work):
        detail = (
            f"the search was stopped after {_CURRENT.get().seconds:g} s of work, before {work}; name a framework, give "
            "layout arguments or ask about fewer GPUs; Python, the command line and stdio have no such bound"
        )
        raise AdvisorError("beyond_budget", detail)


def left_out() -> tuple[str, ...]:
    """A sentence on what the budget left out; none when everything was done."""
    budget = _CURRENT.get()
    if not budget.left_out:
        return ()
    return (f"stopped after {budget.seconds:g} s of work; left out: {', '.join(budget.left_out)}",)
