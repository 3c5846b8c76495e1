"""What a layout costs: the cost order of ``rules/cost_order.yaml`` on one layout or on columns of layouts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from advisor.constraints import expression
from advisor.constraints.facts import AnyLayout, FactsOf
from advisor.constraints.rulebook import law, overlay

if TYPE_CHECKING:
    from advisor.types.case import Case


@dataclass(frozen=True)
class _Price:
    """A cost rule with its expressions read."""

    id: str
    applies: expression.Expression
    adds: expression.Expression


@cache
def _prices() -> tuple[_Price, ...]:
    read = expression.read
    return tuple(_Price(rule.id, read(rule.applies), read(rule.adds)) for rule in law().costs)


def parts(case: Case, layout: AnyLayout) -> dict[str, Any]:
    """What each cost rule adds to the time of perfect arithmetic, by the rule's id; only rules that apply."""
    names = FactsOf(case, layout)
    found: dict[str, Any] = {}
    for price in _prices():
        applies = price.applies(names)
        if applies is not False and applies is not None:
            found[price.id] = _where(applies, price.adds(names))
    return found


def total(case: Case, layout: AnyLayout) -> Any:
    """Relative cost of a step: 1 is perfect arithmetic. A site's preferences multiply it."""
    cost: Any = 1 + sum(parts(case, layout).values())
    names = FactsOf(case, layout)
    for preference in overlay(case.policy.rules).prefer:
        holds = expression.read(preference.when)(names)
        cost = cost * _where(holds, preference.factor, otherwise=1.0)
    return cost


def _where(condition: Any, value: Any, *, otherwise: float = 0.0) -> Any:
    if isinstance(condition, (bool, int)):
        return value if condition else otherwise
    import numpy as np  # noqa: PLC0415 - only columns come this far

    return np.where(condition, value, otherwise)
