"""Arithmetic that is written once for a number and for a numpy column: look-ups, choices, smaller and larger."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Number = Any  # an int, a float, or a numpy column of float64


def pick(table: Sequence[int], index: Number) -> Number:
    """``table[index]`` for an int or a column of whole numbers."""
    if isinstance(index, int):
        return table[index]
    import numpy as np  # noqa: PLC0415 - only columns come this far

    return np.asarray(table, dtype=np.float64)[np.asarray(index, dtype=np.int64)]


def at_most(left: Number, right: Number) -> Number:
    """The smaller of two, for numbers and columns."""
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return min(left, right)
    import numpy as np  # noqa: PLC0415

    return np.minimum(left, right)


def at_least(left: Number, right: Number) -> Number:
    """The larger of two, for numbers and columns."""
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return max(left, right)
    import numpy as np  # noqa: PLC0415

    return np.maximum(left, right)


def choose(condition: Number, yes: Number, no: Number) -> Number:
    """``yes`` where the condition holds, else ``no``; for a bool and for columns."""
    if isinstance(condition, (bool, int)):
        return yes if condition else no
    import numpy as np  # noqa: PLC0415

    return np.where(condition, yes, no)


def whole_quotient(numerator: Number, denominator: Number) -> Number:
    """The quotient rounded down; ints stay ints."""
    return numerator // denominator


def rounded_up(numerator: Number, denominator: Number) -> Number:
    """The quotient rounded up; ints stay ints."""
    return -(-numerator // denominator)


def whole_number(amount: Number) -> Number:
    """The nearest whole number; an int for one case."""
    if isinstance(amount, (int, float)):
        return round(amount)
    import numpy as np  # noqa: PLC0415 - columns, and fractions, which round to ints of their own

    return np.round(amount) if isinstance(amount, np.ndarray) else round(amount)


def nowhere(condition: Number) -> bool:
    """Whether a condition, or all of a column of them, is 0."""
    return not condition if isinstance(condition, (bool, int, float)) else not condition.any()
