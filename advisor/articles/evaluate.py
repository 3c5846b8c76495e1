"""A worked number, computed: its terms with the letters' values, added, divided, rounded or compared."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from advisor.articles.cases import ArticleCase, own_letters
from advisor.articles.collectives import ON_FIRST_RANK, Vector
from advisor.articles.letters import LETTERS
from advisor.articles.shapes import SHAPES
from advisor.articles.shares import SHARES
from advisor.errors import AdvisorError, unknown_name
from advisor.formula import Term
from advisor.terms.articles import ARTICLE_TERMS
from advisor.units import GB

FORMULAS: Final[Mapping[str, Term]] = MappingProxyType({term.name: term for term in (*ARTICLE_TERMS, *SHARES, *SHAPES)})
_ROUNDED: Final[Mapping[str, Callable[[float], float]]] = {"": lambda value: value, "up": math.ceil, "down": math.floor}
_COMPARED: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "at_most": operator.le, "below": operator.lt, "above": operator.gt,
}  # fmt: skip

Values = Mapping[str, float]


@dataclass(frozen=True)
class Line:
    """One term with its numbers; ``sign`` is -1 where it is taken off, ``below`` where it divides."""

    term: Term
    substituted: str
    value: float
    sign: int
    below: bool


@dataclass(frozen=True)
class Figure:
    """What a worked number comes to, in base units: bytes, parameters, seconds, plain numbers.

    Attributes:
        value: the number; None for a collective.
        upper: the upper end, where the article has a range of inputs.
        holds: the comparison's outcome, where the case is one.
        vector: what the first rank holds after a collective.
    """

    value: float | None
    upper: float | None = None
    holds: bool | None = None
    vector: Vector = ()
    lines: tuple[Line, ...] = ()
    letters: Values = field(default_factory=dict)


def evaluate(case: ArticleCase, changed: Values = MappingProxyType({})) -> Figure:
    """The number, with some letters changed.

    Args:
        case: the worked number.
        changed: values by our letters.

    Raises:
        AdvisorError: ``not_covered`` when the article gives no formula; ``invalid_value`` where the values leave no
            number.
    """
    if case.collective:
        return Figure(None, vector=ON_FIRST_RANK[case.collective](case.vectors))
    if not case.executable:
        detail = f"{case.id}: the article prints a number without a formula, so there is nothing to compute"
        raise AdvisorError("not_covered", detail, pointer="/id")
    values = _values(case, {**case.given, **changed})
    try:
        value, lines = _total(case, values)
        upper = _total(case, _values(case, {**case.given, **case.upper}))[0] if case.upper else None
    except (ZeroDivisionError, OverflowError) as error:
        detail = f"{case.id}: these values leave no finite number ({error}); give positive ones"
        raise AdvisorError("invalid_value", detail, pointer="/values") from error
    return Figure(value, upper, _holds(case, value, values), lines=lines, letters=_shown(lines, values))


def _total(case: ArticleCase, values: Values) -> tuple[float, tuple[Line, ...]]:
    lines = (*_lines(case.total, values, below=False), *_lines(case.of, values, below=True))
    above = sum(line.sign * line.value for line in lines if not line.below)
    below = sum(line.sign * line.value for line in lines if line.below) if case.of else 1
    return _ROUNDED[case.rounded](above * case.times / below), lines


def _lines(names: Iterable[str], values: Values, *, below: bool) -> tuple[Line, ...]:
    return tuple(_line(name, values, below) for name in names)


def _line(name: str, values: Values, below: bool) -> Line:
    term = FORMULAS[name.removeprefix("-")]
    return Line(term, term.substituted(values), float(term(values)), -1 if name.startswith("-") else 1, below)


def _holds(case: ArticleCase, value: float, values: Values) -> bool | None:
    if case.limit is None:
        return None
    kind, limit = case.limit
    return _COMPARED[kind](value, values[limit] if isinstance(limit, str) else limit)


def read_letters(case: ArticleCase, given: Values) -> Values:
    """Values by our letters, from ours or from the article's spelling.

    A name may be one of our letters and spell another in the article (its N may be our dp). Then a letter that another
    name gives already is not meant, and a name that may still be either is refused.

    Args:
        case: the worked number.
        given: values by letter.

    Raises:
        AdvisorError: ``unknown_letter`` for a letter the number does not depend on; ``invalid_value`` for a name that
            may mean either of two letters, or for two names of one letter.
    """
    spelt = own_letters(case.article)
    read: dict[str, float] = {}
    for name in sorted(given, key=lambda name: (len(_meant(case, name)), name in case.given)):
        letter = _the_one(case, name, read)
        in_gb = letter != name and spelt[name].get("in") == "GB"
        read[letter] = given[name] * (GB if in_gb else 1)
    return read


def _meant(case: ArticleCase, name: str) -> tuple[str, ...]:
    """The letters of the number that a name may stand for: ours of that name, and what the article spells so."""
    spelt = own_letters(case.article).get(name, {}).get("letter", [])
    article = next((letter for letter in ([spelt] if isinstance(spelt, str) else spelt) if letter in case.given), name)
    return tuple(letter for letter in dict.fromkeys((name, article)) if letter in case.given)


def _the_one(case: ArticleCase, name: str, read: Values) -> str:
    """The letter that a name stands for, beside those read already."""
    meant = _meant(case, name)
    left = [letter for letter in meant if letter not in read]
    if not meant:
        raise unknown_name("letter", name, case.given, pointer=f"/values/{name}")
    if not left and meant == (name,) and name in own_letters(case.article):
        detail = f"the number does not depend on the article's {name}; accepted: {', '.join(case.given)}"
        raise AdvisorError("unknown_letter", detail, pointer=f"/values/{name}")
    if len(left) == 1:
        return left[0]
    others = [other for letter in meant for other in _other_names(case, letter, name)]
    meanings = " or ".join(f"{letter} ({LETTERS[letter].meaning})" for letter in meant)
    hint = f"give {' or '.join(others)}, or both" if left else "another name gives it already"
    detail = f"{name} stands for {meanings}; {hint}"
    raise AdvisorError("invalid_value", detail, pointer=f"/values/{name}", suggestions=others)


def _other_names(case: ArticleCase, letter: str, name: str) -> tuple[str, ...]:
    """A name of a letter that cannot be mistaken: ours, or another spelling of the article."""
    spelt = own_letters(case.article).items()
    names = (letter, *(other for other, own in spelt if own["letter"] == letter))
    return tuple(other for other in names if other != name)[:1]


def _values(case: ArticleCase, given: Values) -> Values:
    """Every letter: given, following from others, or what the articles take."""
    values = {name: letter.default for name, letter in LETTERS.items() if letter.default is not None} | dict(given)
    follows: Mapping[str, Callable[[], float]] = {
        "G": lambda: values["N"],
        "G_x": lambda: values["N_e"],
        "g": lambda: values["a"],
        "f": lambda: values["h"],
        "d": lambda: values["h"] / values["a"],
    }
    for name, read in follows.items():
        if name not in values and set(_needs(name)) <= set(values):
            values[name] = read()
    for place, letter in enumerate(("z_1", "z_2", "z_3"), start=1):
        values[letter] = values["dp"] if case.zero_stage >= place else 1
    if "K" in given:
        values |= {"rho": 1 / values["K"], "kappa": (values["K"] - 1) / values["K"]}
    return values


def _needs(name: str) -> tuple[str, ...]:
    return {"G": ("N",), "G_x": ("N_e",), "g": ("a",), "f": ("h",), "d": ("h", "a")}[name]


def _shown(lines: Iterable[Line], values: Values) -> Values:
    used = {symbol for line in lines for symbol in line.term.symbols}
    return {name: values[name] for name in LETTERS if name in used}
