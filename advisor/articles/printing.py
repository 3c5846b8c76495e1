"""A worked number as its article prints it: in the article's unit, rounded as the article rounds.

Most numbers are rounded to the nearest in their last digit. Where an article cuts off, rounds up, rounds to tens or
counts in binary units, the number's row says so under ``prints``.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from types import MappingProxyType
from typing import Final

from advisor.articles.cases import ArticleCase, Stated
from advisor.articles.evaluate import Figure
from advisor.units import BILLION, GB, KIB, MIB, MILLION, TERA

#: What a unit of the articles counts; one that is not here counts ones.
UNITS: Final[Mapping[str, float]] = MappingProxyType(
    {
        "GB": GB, "MB": MILLION, "TB": TERA, "MiB": MIB, "thousand KiB": 1000 * KIB, "%": 0.01, "Bparams": BILLION,
        "Mparams": MILLION, "Miparams": MIB,
    }
)  # fmt: skip
_ROUNDING: Final[Mapping[str, str]] = {"nearest": ROUND_HALF_UP, "up": ROUND_CEILING, "down": ROUND_FLOOR}
#: Digits of a binary number that carry meaning; the rest is noise that would tip a rounding.
_DIGITS: Final = 12


def as_printed(case: ArticleCase, figure: Figure) -> Stated:
    """The product's value as the article would print it; None where the article prints no number."""
    if case.stated is None or case.collective or figure.holds is not None:
        return figure.vector or figure.holds if case.stated is not None else None
    assert figure.value is not None
    if not isinstance(case.stated, tuple):
        return _printed(figure.value, case, float(case.stated))
    ends = (figure.value, figure.value if figure.upper is None else figure.upper)
    within = case.stated[0] <= _in_unit(ends[0], case) and _in_unit(ends[1], case) <= case.stated[1]
    if within:
        return case.stated
    return tuple(_printed(end, case, stated) for end, stated in zip(ends, case.stated, strict=True))


def stated_text(case: ArticleCase, stated: Stated) -> str:
    """A printed value as text, with the article's unit; empty where none is printed."""
    if stated is None:
        return ""
    if isinstance(stated, bool) or case.collective:
        return str(stated)
    ends = stated if isinstance(stated, tuple) else (stated,)
    return f"{' to '.join(f'{end:,.10g}' for end in ends)} {case.unit}"


def _printed(value: float, case: ArticleCase, stated: float) -> float:
    """A value rounded to the last digit of what the article prints."""
    step = Decimal(repr(case.prints.get("step", _last_digit(stated))))
    exact = Decimal(f"{_in_unit(value, case):.{_DIGITS}g}")
    return float((exact / step).to_integral_value(_ROUNDING[case.prints.get("rounded", "nearest")]) * step)


def _in_unit(value: float, case: ArticleCase) -> float:
    return value / UNITS.get(case.prints.get("unit", case.unit), 1)


def _last_digit(stated: float) -> float:
    """One in the last digit of a number: 0.1 for 25.7, 1 for a whole number."""
    exponent = Decimal(repr(stated)).normalize().as_tuple().exponent
    assert isinstance(exponent, int)
    return float(Decimal(10) ** min(exponent, 0))
