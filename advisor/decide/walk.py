"""The walk: from plain data parallelism to the searched layout, one question of the tree after the other."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from advisor.constraints import expression
from advisor.constraints import rules as law_rules
from advisor.constraints.facts import FactsOf
from advisor.constraints.legality import fill
from advisor.constraints.rulebook import law
from advisor.decide.counterfactual import why_not
from advisor.decide.moves import moved, notches, plain_data_parallel, values_of
from advisor.estimate import Breakdown, estimate
from advisor.search import cost
from advisor.types.answers import Comparison, Step
from advisor.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.search.choose import Found
    from advisor.types.case import Case, Layout


@dataclass(frozen=True)
class _Point:
    """Where the walk stands: a layout that need not be legal, and its memory."""

    layout: Layout
    memory: Breakdown


def walk(found: Found) -> tuple[Step, ...]:
    """The steps from plain data parallelism to the found layout, in the order of the tree.

    A lever that a later step needs is set by that step; every step reports the peak before and after, the lever's
    share of the found layout's own step, and what one notch less or more would have meant.
    """
    goal = found.case
    here = _point(goal, plain_data_parallel(goal))
    names = _Names(FactsOf(goal, goal.layout), fits=found.fits_the_gpus)
    steps: list[Step] = []
    for rule in law().steps:
        if not expression.read(rule.when)(names):
            continue
        there = _after(goal, here, rule)
        steps.append(_step(found, rule, names, here, there))
        here = there
    return tuple(steps)


class _Names(dict[str, Any]):
    """The found layout's facts, and whether it fits."""

    def __init__(self, facts: FactsOf, *, fits: bool) -> None:
        super().__init__(fits=fits)
        self._facts = facts

    def __missing__(self, name: str) -> Any:
        return self._facts[name]


def _point(case: Case, layout: Layout) -> _Point:
    return _Point(layout, estimate(case.model_copy(update={"layout": layout})))


def _after(goal: Case, here: _Point, rule: law_rules.Step) -> _Point:
    """The walk's next point: this rule's levers as in the goal."""
    if not rule.levers:
        return here
    layout = moved(goal, here.layout, values_of(goal.layout, rule.levers))
    return here if layout is None else _point(goal, layout)


def _step(found: Found, rule: law_rules.Step, names: Mapping[str, Any], here: _Point, there: _Point) -> Step:
    lever = rule.notch
    lower, higher = notches(lever, found.case.layout) if lever else (None, None)
    before, after = here.memory.peak_bytes, there.memory.peak_bytes
    return Step(
        id=rule.id,
        question=rule.question,
        lever=rule.levers[0] if rule.levers else lever,
        **{"from": _shown(here.layout, rule)},
        to=_shown(there.layout, rule),
        before=before,
        after=after,
        before_terms=dict(here.memory.by_slot),
        after_terms=dict(there.memory.by_slot),
        share_of_step=_share(found, rule),
        because=_because(rule, names, here, there),
        why_not_less=why_not(found, lever, lower),
        why_not_more=why_not(found, lever, higher),
        comparisons=(_against_limit(found, there),),
        sources=tuple(str(source) for source in rule.sources),
    )


def _because(rule: law_rules.Step, names: Mapping[str, Any], here: _Point, there: _Point) -> str:
    before, after = here.memory.peak_bytes, there.memory.peak_bytes
    words = {
        "before": format_bytes(before),
        "after": format_bytes(after),
        "saved": format_bytes(before - after),
        "usable": format_bytes(there.memory.usable_bytes),
    }
    said = next(reason.say for reason in rule.because if expression.read(reason.when)(names))
    return fill(said, _Words(words, names))


class _Words(dict[str, Any]):
    """What a sentence may name: the walk's own words, then the facts."""

    def __init__(self, words: Mapping[str, str], facts: Mapping[str, Any]) -> None:
        super().__init__(words)
        self._facts = facts

    def __missing__(self, name: str) -> Any:
        return self._facts[name]


def _against_limit(found: Found, there: _Point) -> Comparison:
    reserved = there.memory.reserved_bytes
    return Comparison(
        what="reserved memory against usable memory less the headroom",
        left=reserved,
        operator="<=",
        right=found.limit_bytes,
        unit="B",
        holds=reserved <= found.limit_bytes,
    )


def _share(found: Found, rule: law_rules.Step) -> float | None:
    """The lever's share of the found layout's own step; None for a lever that adds no time of its own."""
    return cost.share(found.case, rule.time)


def _shown(layout: Layout, rule: law_rules.Step) -> str:
    """The values of a rule's levers: the first bare, the others named where they differ from the default."""
    if not rule.levers:
        return ""
    first, *others = rule.levers
    defaults = type(layout)()
    named = [
        f"{name}={_text(getattr(layout, name))}" for name in others if getattr(layout, name) != getattr(defaults, name)
    ]
    return ", ".join([_text(getattr(layout, first)), *named])


def _text(value: Any) -> str:
    """A value in few words: equal ones in a row are counted, as in ``15x4/1``."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if not isinstance(value, tuple):
        return str(value)
    runs = [(item, len(list(alike))) for item, alike in groupby(value)]
    return "/".join(f"{count}x{item}" if count > 1 else str(item) for item, count in runs)
