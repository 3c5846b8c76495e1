"""Which advice concerns a finished answer: the rules of ``rules/advice``, judged against the case and its answer."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from advisor.constraints import expression
from advisor.constraints.answer_facts import ANSWER_FACTS
from advisor.constraints.facts import FactsOf
from advisor.constraints.legality import fill
from advisor.constraints.rulebook import advice_rules
from advisor.constraints.rules import Advice
from advisor.types.answers import MemoryAnswer
from advisor.types.case import Case
from advisor.units import MILLION, format_count

_PLACEHOLDER: Final = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class _Ready:
    """A rule with its condition read, and the names that its sentence shows."""

    rule: Advice
    when: expression.Expression
    shown: tuple[str, ...]


class AnswerFacts(FactsOf):
    """The facts of a case and of its answer; each is read when an expression first asks for it."""

    def __init__(self, case: Case, answer: MemoryAnswer) -> None:
        super().__init__(case, case.layout)
        self._answer = answer

    def __missing__(self, name: str) -> Any:
        if name not in ANSWER_FACTS:
            return super().__missing__(name)
        value = self[name] = ANSWER_FACTS[name].read(self._case, self._answer)
        return value


def advice(case: Case, answer: MemoryAnswer) -> tuple[str, ...]:
    """What to say of an answer: a sentence for each rule that fires, with its id and whether the article is right."""
    names = AnswerFacts(case, answer)
    return tuple([_sentence(ready, names) for ready in _ready() if ready.when(names)])


@cache
def _ready() -> tuple[_Ready, ...]:
    return tuple(
        _Ready(rule, expression.read(rule.when), tuple(_PLACEHOLDER.findall(rule.say))) for rule in advice_rules()
    )


def _sentence(ready: _Ready, names: AnswerFacts) -> str:
    rule = ready.rule
    said = fill(rule.say, {name: _text(name, names[name]) for name in ready.shown})
    return f"{said} [{rule.id}; {rule.sources[0]}: {rule.judged}]"


def _text(name: str, value: Any) -> Any:
    """A fact as a sentence shows it: bytes in GiB, parameters in billions, other numbers as they are."""
    if name in ANSWER_FACTS:
        return ANSWER_FACTS[name].text(value)
    return format_count(value) if isinstance(value, (int, float)) and value > MILLION else value
