"""What varies in a sweep: each argument's values, from a list or a range."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from advisor.errors import AdvisorError
from advisor.request import read_request, unknown_argument
from advisor.types.arguments import CaseArguments
from advisor.units import parse_token_count

MOST_VALUES = 10_000
MOST_ROWS = 2_000_000
#: What does not vary: it decides how an answer is given, speaks of one layout only, or fits into no cell.
NOT_VARIED = ("detail", "rules", "law", "objective", "measured_peak_gib", "hf_config", "architecture")
_RANGE = re.compile(r"\s*(?P<first>[^.\s]+(?:\.\d+)?)\s*\.\.\s*(?P<last>\S+?)\s*(?:\s(?P<step>[*x]?\s*\S+))?\s*")
_ACCEPTED = "accepted: a list of values, 'from..to step' such as '1024..8192 1024', or '1..64 *2'"

_EPSILON = 1e-9

Axes = Mapping[str, tuple[Any, ...]]


def read_axes(vary: Mapping[str, Any]) -> Axes:
    """Each varied argument with its values, as the case itself reads them, without repeats.

    Raises:
        AdvisorError: an argument does not exist or cannot vary, a range cannot be read, a value is refused, or the
            combinations are more than ``MOST_ROWS``.
    """
    if not vary:
        raise AdvisorError("missing_argument", "vary is empty; name at least one argument to vary", pointer="/vary")
    axes = {name: _values(name, given) for name, given in vary.items()}
    rows = math.prod(len(values) for values in axes.values())
    if rows > MOST_ROWS:
        sizes = " x ".join(f"{name} {len(values):,}" for name, values in axes.items())
        detail = f"vary asks for {rows:,} rows ({sizes}); accepted: at most {MOST_ROWS:,}; shorten a list"
        raise AdvisorError("invalid_value", detail, pointer="/vary")
    return axes


def _values(name: str, given: Any) -> tuple[Any, ...]:
    accepted = [known for known in CaseArguments.model_fields if known not in NOT_VARIED]
    if name in NOT_VARIED:
        detail = f"{name} is an argument, but none that can vary: give one value of it in case, or leave it out"
        raise AdvisorError("invalid_value", detail, pointer=f"/vary/{name}")
    if name not in accepted:
        raise unknown_argument(name, accepted, pointer="/vary")
    pointer = f"/vary/{name}"
    listed = _range(given, pointer) if isinstance(given, str) and ".." in given else given
    if not isinstance(listed, (list, tuple)):
        listed = [listed]
    if not listed or len(listed) > MOST_VALUES:
        detail = f"vary.{name} has {len(listed):,} values; accepted: 1 to {MOST_VALUES:,}; {_ACCEPTED}"
        raise AdvisorError("invalid_value", detail, pointer=pointer)
    return tuple(dict.fromkeys(_as_case_reads(name, value, pointer) for value in listed))


def _as_case_reads(name: str, value: Any, pointer: str) -> Any:
    if value is None:
        return None
    try:
        return getattr(read_request(CaseArguments, {name: value}), name)
    except AdvisorError as error:
        raise AdvisorError(error.code, error.detail, pointer=pointer, suggestions=error.suggestions) from error


def _range(text: str, pointer: str) -> list[int | float]:
    match = _RANGE.fullmatch(text)
    ends = [_number(match[part]) for part in ("first", "last")] if match else [None]
    step = _step(match["step"]) if match else None
    if not match or step is None or None in ends:
        raise AdvisorError("invalid_value", f"{text!r} is not a range; {_ACCEPTED}", pointer=pointer)
    first, last = (float(end) for end in ends if end is not None)
    times, by = step
    if first > last or by <= (1 if times else 0) or (times and first <= 0):
        detail = f"{text!r} never gets from {first:g} to {last:g}; {_ACCEPTED}"
        raise AdvisorError("invalid_value", detail, pointer=pointer)
    found: list[float] = []
    while (
        len(found) <= MOST_VALUES and (value := first * by ** len(found) if times else first + by * len(found)) <= last
    ):
        found.append(round(value, 9))
    return [int(value) if value.is_integer() else value for value in found]


def _step(text: str | None) -> tuple[bool, float] | None:
    """Whether it multiplies, and by how much."""
    if text is None:
        return False, 1.0
    times = text[0] in "*x"
    number = _number(text.lstrip("*x").strip())
    return None if number is None else (times, number)


def _number(text: str) -> float | None:
    tokens = parse_token_count(text)
    if tokens is not None:
        return float(tokens)
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
