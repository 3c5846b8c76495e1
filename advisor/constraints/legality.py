"""Which layouts a framework accepts: one set of rules for a single layout and for columns of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

from advisor.constraints import expression
from advisor.constraints.facts import FactsOf
from advisor.constraints.rulebook import constraints, overlay
from advisor.constraints.rules import Cap, Constraint, Forbid
from advisor.errors import AdvisorError
from advisor.types.case import Case
from advisor.types.columns import Columns

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_LISTED = 12
_PLACEHOLDER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Condition:
    """A constraint ready to be evaluated: shipped, or from a site's overlay.

    Attributes:
        id: the rule's id, as answers cite it.
        pointer: the argument at fault.
        legal: an expression that lists the argument's legal values; None when they cannot be listed.
    """

    id: str
    applies: expression.Expression
    require: expression.Expression
    message: str
    pointer: str
    legal: expression.Expression | None
    sources: tuple[str, ...]

    @cached_property
    def names(self) -> frozenset[str]:
        """The facts that it speaks of."""
        return frozenset((*self.applies.names, *self.require.names))


@dataclass(frozen=True)
class Violation:
    """A broken constraint, in words."""

    id: str
    message: str
    pointer: str
    legal: tuple[str, ...]
    sources: tuple[str, ...]


def check(case: Case) -> tuple[Violation, ...]:
    """Every constraint that the case's layout breaks, in the order of the rule files."""
    names = FactsOf(case, case.layout)
    return tuple(_violation(rule, names) for rule in _conditions(case) if not _holds(rule, names))


def require_legal(case: Case) -> None:
    """Refuse a case whose layout its framework does not accept.

    Raises:
        AdvisorError: ``illegal_layout``: the first broken constraint, the legal values, and how many more there are.
    """
    broken = check(case)
    if not broken:
        return
    first = broken[0]
    more = f" ({len(broken) - 1} more: {', '.join(rule.id for rule in broken[1:])})" if len(broken) > 1 else ""
    detail = f"{first.message} [{first.id}]{more}"
    raise AdvisorError("illegal_layout", detail, pointer=f"/{first.pointer}", suggestions=first.legal)


def legal_rows(case: Case, columns: Columns, known: Collection[str] | None = None) -> NDArray[np.bool_]:
    """True for each row whose layout the case's framework accepts.

    Args:
        case: the job.
        columns: layouts.
        known: names that are chosen already; constraints that speak of others are left for later. None: all are.
    """
    import numpy as np  # noqa: PLC0415 - only a search comes this far

    names = FactsOf(case, columns)
    legal = np.ones(len(columns), dtype=np.bool_)
    for rule in _conditions(case):
        if known is not None and not rule.names.issubset(known):
            continue
        applies = rule.applies(names)
        if applies is not False:
            legal &= (np.asarray(applies) == 0) | (np.asarray(rule.require(names)) != 0)
    return legal


def broken_rows(case: Case, columns: Columns) -> NDArray[np.str_]:
    """For each row the id of the first constraint that its layout breaks; empty where it is legal."""
    import numpy as np  # noqa: PLC0415 - only a sweep comes this far

    names = FactsOf(case, columns)
    broken = np.full(len(columns), "", dtype="<U200")
    for rule in reversed(_conditions(case)):
        breaks = (np.asarray(rule.applies(names)) != 0) & (np.asarray(rule.require(names)) == 0)
        broken[np.broadcast_to(breaks, len(columns))] = rule.id
    return broken


def fill(template: str, names: Mapping[str, Any]) -> str:
    """A rule's sentence with its placeholders replaced."""
    return _PLACEHOLDER.sub(lambda match: _said(names[match[1]]), template)


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float) and not value.is_integer():
        return f"{value:,.2f}"
    return f"{int(value):,}" if isinstance(value, (int, float)) else str(value)


def _holds(rule: Condition, names: FactsOf) -> bool:
    return not rule.applies(names) or bool(rule.require(names))


def _violation(rule: Condition, names: FactsOf) -> Violation:
    legal = tuple(_listed(value) for value in rule.legal(names)) if rule.legal else ()
    shown = ", ".join(legal[:MOST_LISTED]) + (" …" if len(legal) > MOST_LISTED else "")
    accepted = f"; accepted: {shown}" if legal else ""
    return Violation(rule.id, fill(rule.message, names) + accepted, rule.pointer, legal, rule.sources)


def _listed(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _conditions(case: Case) -> tuple[Condition, ...]:
    """What the framework accepts, then what the site does; an article's profile computes what no framework runs."""
    site = overlay(case.policy.rules)
    own = [*(_forbidden(rule) for rule in site.forbid), *(_capped(rule) for rule in site.cap)]
    return (*(_of_framework(case.training.framework) if case.policy.profile == "exact" else ()), *own)


@cache
def _of_framework(framework: str) -> tuple[Condition, ...]:
    return tuple(condition(rule) for rule in constraints() if rule.frameworks == "all" or framework in rule.frameworks)


def condition(rule: Constraint) -> Condition:
    """A constraint of a rule file, with its expressions read."""
    legal = expression.read(rule.legal) if rule.legal else None
    applies, require = expression.read(rule.applies), expression.read(rule.require)
    cited = tuple(str(source) for source in rule.sources)
    return Condition(rule.id, applies, require, rule.message, rule.pointer, legal, cited)


def _forbidden(rule: Forbid) -> Condition:
    never = expression.read(f"not ({rule.when})")
    return Condition(rule.id, expression.read("True"), never, rule.message, rule.pointer, None, ("site policy",))


def _capped(rule: Cap) -> Condition:
    bound = expression.read(f"{rule.argument} <= {rule.at_most}")
    message = f"{rule.argument}={{{rule.argument}}} is above {rule.at_most}: {rule.message}"
    return Condition(rule.id, expression.read("True"), bound, message, rule.argument, None, ("site policy",))
