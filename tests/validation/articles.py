"""Worked numbers of three articles, each made by the product's own terms from the row's inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from advisor.articles import ArticleCase, Figure, evaluate, find_case, read_letters
from advisor.errors import AdvisorError
from tests.validation.facts import BadCallError, fact, read_yaml

UNITS = {"GB": 1e9, "MB": 1e6, "TB": 1e12, "Bparams": 1e9, "Mparams": 1e6, "%": 0.01}
RECOMPUTED, STATED = 1e-6, 0.02
#: A printed number may count in binary units without saying so: 1,024, 1,024 squared, 1,024 cubed (conflict C1).
BINARY = (1, 1.024, 1.024**2, 1.024**3)

Row = Mapping[str, Any]


def run(path: Path) -> dict[str, Any]:
    """Computes every row, prints those that differ and returns how many pass, fail and cannot be computed."""
    outcomes = {fact(row, "id", str(path)): outcome(row) for row in read_rows(path)}
    for key, reason in outcomes.items():
        if reason:
            print(f"{key:<40}{reason}")
    without = sum(reason == NO_FORMULA for reason in outcomes.values())
    passed = sum(not reason for reason in outcomes.values())
    return {"passed": passed, "failed": len(outcomes) - passed - without, "not_executable": without}


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
        case, figure = computed(row)
    except AdvisorError as error:
        return error.detail
    if not is_recomputed(row, case, figure):
        return f"{shown(case, figure)} instead of {row['recomputed']} {row['unit']}"
    if row.get("agrees") and not is_printed(row, case, figure):
        return f"{shown(case, figure)} is not the printed {row['stated']} {row['unit']}"
    return ""


def computed(row: Row) -> tuple[ArticleCase, Figure]:
    """The product's figure from the row's inputs; those that the number does not depend on are left aside."""
    case = find_case(row["id"])
    letters: dict[str, float] = {}
    for name, value in row.get("inputs", {}).items():
        if not isinstance(value, list | str):
            with contextlib.suppress(AdvisorError):
                letters |= read_letters(case, {name: value}, own_spelling=True)
    return case, evaluate(case, letters)


def shown(case: ArticleCase, figure: Figure) -> Any:
    """The figure in the unit that the article prints."""
    if figure.holds is not None:
        return figure.holds
    return list(figure.vector) if figure.vector else (figure.value or 0) / UNITS.get(case.unit, 1)


def is_recomputed(row: Row, case: ArticleCase, figure: Figure) -> bool:
    """Whether the figure is the one that the row's formula gives."""
    ours, expected = shown(case, figure), row["recomputed"]
    if isinstance(expected, bool | list):
        return bool(ours == expected)
    return bool(abs(ours - expected) <= RECOMPUTED * abs(expected))


def is_printed(row: Row, case: ArticleCase, figure: Figure) -> bool:
    """Whether the printed number, range or verdict holds: within 2 % or one unit in its last digit."""
    ours, printed = shown(case, figure), row["stated"]
    if isinstance(printed, bool) or isinstance(ours, list):
        return bool(ours == printed)
    low, high = ends(printed)
    if low != high:
        upper = ours if figure.upper is None else figure.upper / UNITS.get(case.unit, 1)
        return bool(low * (1 - STATED) <= upper and ours <= high * (1 + STATED))
    near = max(STATED * abs(low), last_digit(low)) * (1 + RECOMPUTED)
    return any(abs(ours / binary - low) <= near for binary in BINARY)


def ends(printed: Any) -> tuple[float, float]:
    """A printed number as a range: ``{lo, hi}``, a pair, or twice itself."""
    if isinstance(printed, Mapping):
        return printed["lo"], printed["hi"]
    return tuple(printed) if isinstance(printed, list) else (printed, printed)


def last_digit(printed: float) -> float:
    """One unit in the last digit of a number as it is printed: some articles cut off rather than round."""
    text = f"{printed:.10g}"
    if "." in text:
        return float(10.0 ** -len(text.partition(".")[2]))
    return float(10.0 ** max(0, len(text) - 3))
