"""What all value objects share: frozen, closed, and numbers a person may write as "8k"."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from advisor import units

#: No model, batch or cluster reaches this; it keeps every product of a formula inside float64's exact range.
LARGEST_COUNT = 10**9


class Value(BaseModel):
    """A frozen value that refuses fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _read_count(value: Any) -> Any:
    """Accept "8k", "128K", "1M" and digits for an integer; everything else is left to the type."""
    if isinstance(value, bool):
        raise ValueError("expected an integer, got true or false")  # noqa: TRY004 - pydantic reports ValueError
    if isinstance(value, str):
        counted = units.parse_token_count(value)
        if counted is not None:
            return counted
        digits = value.strip().replace("_", "").replace(",", "")
        if digits.isdecimal():
            return int(digits)
        raise ValueError(f"expected an integer such as 4096 or '8k', got {value!r}")
    return value


def _read_total(value: Any) -> Any:
    """Accept "500M", "1B" and "2T" as well, in powers of ten: so tokens of a training are counted."""
    total = units.parse_token_total(value) if isinstance(value, str) else None
    return _read_count(value) if total is None else total


Count = Annotated[int, Field(ge=1, le=LARGEST_COUNT), BeforeValidator(_read_count)]
CountOrZero = Annotated[int, Field(ge=0, le=10**15), BeforeValidator(_read_count)]
LargeCount = Annotated[int, Field(ge=0, le=10**18), BeforeValidator(_read_count)]
TokenTotal = Annotated[int, Field(ge=0, le=10**18), BeforeValidator(_read_total)]
SmallCount = Annotated[int, Field(ge=1, le=65_536), BeforeValidator(_read_count)]
StepCount = Annotated[int, Field(ge=1, le=1_000_000), BeforeValidator(_read_count)]
StageNumber = Annotated[int, Field(ge=0, le=3), BeforeValidator(_read_count)]
Share = Annotated[float, Field(ge=0, le=1)]
