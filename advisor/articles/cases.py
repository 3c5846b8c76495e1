"""Reads the worked numbers of the articles: which terms make each, with which letters, and what the article prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from advisor.catalog.reader import read_catalog_file
from advisor.errors import unknown_name

#: Each article by the first letters of its cases.
ARTICLES: Final[Mapping[str, str]] = {"s0": "article-m3", "s1": "article-must-know", "s3": "article-16-bytes"}

Stated = float | bool | tuple[float, ...] | None


@dataclass(frozen=True)
class ArticleCase:
    """One worked number.

    Attributes:
        total: terms that are added up; one with ``-`` before it is taken off.
        of: terms that the total is divided by; empty when it is not a ratio.
        given: letters and the article's values for them.
        zero_stage: which states the data-parallel ranks share.
        upper: letters with other values for the upper end of a range.
        limit: what the value is compared with, and how: ``("at_most", 80e9)``.
        stated: what the article prints, in ``unit``: a number, both ends of a range, a verdict.
        prints: how it prints it, where not rounded to the nearest last digit in ``unit``: rounded, step, unit.
        agrees: whether what is printed follows from the article's own formula, to its last digit.
        sound: whether the formula may be used beyond the article.
        better: a better value in ``better_unit``, where there is one.
    """

    id: str
    article: str
    section: str
    title: str
    unit: str
    total: tuple[str, ...]
    of: tuple[str, ...]
    given: Mapping[str, float]
    zero_stage: int
    upper: Mapping[str, float]
    times: float
    rounded: str
    limit: tuple[str, float | str] | None
    collective: str
    vectors: tuple[tuple[float, ...], ...]
    stated: Stated
    prints: Mapping[str, Any]
    agrees: bool | None
    sound: bool
    better: float | None
    better_unit: str
    conflicts: tuple[str, ...]

    @property
    def executable(self) -> bool:
        """Whether the article gives a formula."""
        return bool(self.total or self.collective)


def find_case(case_id: str) -> ArticleCase:
    """The worked number of that id.

    Raises:
        AdvisorError: ``unknown_entry`` with the nearest ids.
    """
    article = ARTICLES.get(case_id.partition("-")[0])
    known = _cases(article) if article else {}
    if case_id not in known:
        raise unknown_name("entry", case_id, known or ARTICLES.values(), pointer="/id")
    return known[case_id]


def case_ids() -> tuple[str, ...]:
    """Every worked number, article by article."""
    return tuple(case_id for article in ARTICLES.values() for case_id in _cases(article))


def own_letters(article: str) -> Mapping[str, Mapping[str, Any]]:
    """How an article spells its letters: its name to ``letter`` and the unit it counts in."""
    letters: Mapping[str, Mapping[str, Any]] = _file(article)["letters"]
    return letters


def _file(article: str) -> Mapping[str, Any]:
    content: Mapping[str, Any] = read_catalog_file(f"knowledge/{article}.yaml")
    return content


@cache
def _cases(article: str) -> Mapping[str, ArticleCase]:
    return {
        case_id: _read(case_id, article, group, row)
        for group in _file(article)["groups"]
        for case_id, row in group["cases"].items()
    }


def _read(case_id: str, article: str, group: Mapping[str, Any], row: Mapping[str, Any]) -> ArticleCase:
    limit = next(((kind, row[kind]) for kind in ("at_most", "below", "above") if kind in row), None)
    better = row.get("better", {})
    return ArticleCase(
        id=case_id,
        article=article,
        section=str(group["section"]),
        title=row["title"],
        unit=row["unit"],
        total=tuple(row.get("sum", ())),
        of=tuple(row.get("of", ())),
        given=group.get("given", {}),
        zero_stage=row.get("zero", 0),
        upper=row.get("upper", {}),
        times=row.get("times", 1),
        rounded=row.get("rounded", ""),
        limit=limit,
        collective=row.get("collective", ""),
        vectors=tuple(map(tuple, row.get("vectors", ()))),
        stated=_stated(row.get("stated")),
        prints=row.get("prints", {}),
        agrees=row.get("agrees"),
        sound=row.get("sound", True),
        better=better.get("value"),
        better_unit=better.get("unit", ""),
        conflicts=tuple(row.get("conflicts", ())),
    )


def _stated(value: Any) -> Stated:
    return tuple(value) if isinstance(value, list) else value
