"""Worked numbers of three articles, each asked of `explain` by its id with the row's inputs, as any reader can.

Where a number is the memory of a job, or follows from a model's shapes or from what fits, ``tests/article_doors.py``
asks ``estimate_memory``, ``describe_model`` and ``find_limit`` for it as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import advisor
from advisor.errors import AdvisorError
from advisor.types import ExplainAnswer
from tests.validation.facts import BadCallError, fact, read_yaml

UNITS = {"GB": 1e9, "MB": 1e6, "TB": 1e12, "Bparams": 1e9, "Mparams": 1e6, "%": 0.01}
#: How near a computed value comes to an independent one, and a printed one where a file does not say how it rounds.
RECOMPUTED, STATED = 1e-6, 0.02

Row = Mapping[str, Any]


def run(path: Path) -> dict[str, Any]:
    """Computes every row, prints those that differ and returns how many pass, fail and cannot be computed."""
    rows = {fact(row, "id", str(path)): row for row in read_rows(path)}
    outcomes = {key: outcome(row) for key, row in rows.items()}
    for key, reason in outcomes.items():
        if reason:
            print(f"{key:<40}{reason}")
    without = sum(reason == NO_FORMULA for reason in outcomes.values())
    passed = [key for key, reason in outcomes.items() if not reason]
    return {
        "passed": len(passed),
        "failed": len(outcomes) - len(passed) - without,
        "not_executable": without,
        "agreeing": sum(bool(row.get("agrees")) for row in rows.values()),
        "to_the_printed_digit": sum(
            bool(rows[key].get("agrees")) and is_as_printed(asked(rows[key])) for key in passed
        ),
    }


def read_rows(path: Path) -> list[Row]:
    """The rows of a file.

    Raises:
        BadCallError: the file cannot be read or has no list of cases.
    """
    facts = read_yaml(path)
    rows = facts.get("cases") if isinstance(facts, dict) else None
    if not isinstance(rows, list) or not rows:
        raise BadCallError(f"{path} has no 'cases'; this kind needs a list of worked numbers under it")
    return rows


NO_FORMULA = "the article prints no formula"


def outcome(row: Row) -> str:
    """Why a row is not what the product says; empty when it is."""
    if row.get("formula") is None or row.get("recomputed") is None:
        return NO_FORMULA
    try:
        answer = asked(row)
    except AdvisorError as error:
        return error.detail
    if not is_recomputed(row, answer):
        return f"{value(row, answer)} instead of {row['recomputed']} {row['unit']}"
    if row.get("agrees") and not is_near(row, answer):
        return f"{value(row, answer)} is not the printed {row['stated']} {row['unit']}"
    return ""


def asked(row: Row) -> ExplainAnswer:
    """The product's answer from the row's inputs; those that the number does not depend on are left aside.

    Raises:
        AdvisorError: there is no number of that id, or the inputs leave none.
    """
    given = {name: number for name, number in row.get("inputs", {}).items() if not isinstance(number, list | str)}
    while True:
        try:
            return advisor.explain(id=row["id"], values=given)
        except AdvisorError as error:
            if error.code != "unknown_letter":
                raise
            del given[error.pointer.rpartition("/")[2]]


def value(row: Row, answer: ExplainAnswer) -> Any:
    """The answer's figure in the unit of the row: a number, a verdict or a list."""
    figure = answer.figures[0]
    if figure.holds is not None:
        return figure.holds
    return list(figure.items) if figure.value is None else figure.value / UNITS.get(row["unit"], 1)


def is_recomputed(row: Row, answer: ExplainAnswer) -> bool:
    """Whether the figure is the one that the row's formula gives."""
    ours, expected = value(row, answer), row["recomputed"]
    if isinstance(expected, bool | list):
        return bool(ours == expected)
    upper = row.get("recomputed_hi")
    top = answer.figures[0].upper if upper else None
    return _is(ours, expected) and (not upper or (top is not None and _is(top / UNITS.get(row["unit"], 1), upper)))


def _is(ours: float, expected: float) -> bool:
    return abs(ours - expected) <= RECOMPUTED * abs(expected)


def is_as_printed(answer: ExplainAnswer) -> bool:
    """Whether the answer, in the article's own unit and rounding, is what the article prints, digit for digit."""
    return answer.article is not None and answer.article.as_printed == answer.article.stated


def is_near(row: Row, answer: ExplainAnswer) -> bool:
    """Whether a row's printed number, range or verdict holds: digit for digit, or within 2 %, as such files count."""
    ours, printed = value(row, answer), row["stated"]
    if isinstance(printed, bool) or isinstance(ours, list):
        return bool(ours == printed)
    low, high = ends(printed)
    same = answer.article is not None and answer.article.stated == f"{low:,.10g} {row['unit']}"
    if same and is_as_printed(answer):
        return True
    top = answer.figures[0].upper
    upper = ours if top is None or low == high else top / UNITS.get(row["unit"], 1)
    return bool(low * (1 - STATED) <= upper and ours <= high * (1 + STATED))


def ends(printed: Any) -> tuple[float, float]:
    """A printed number as a range: ``{lo, hi}``, a pair, or twice itself."""
    if isinstance(printed, Mapping):
        return printed["lo"], printed["hi"]
    return tuple(printed) if isinstance(printed, list) else (printed, printed)
