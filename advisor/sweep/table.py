"""What a sweep's rows say: filtered, sorted, the Pareto front, and the values at which it stops fitting."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from advisor.constraints import expression
from advisor.errors import AdvisorError, nearest
from advisor.sweep.axes import Axes
from advisor.sweep.grid import Swept, Table

MOST_TURNING_POINTS = 6
MOST_PARETO = 12

Row = tuple[Any, ...]


def table_of(swept: Swept, axes: Axes) -> Table:
    """Arguments in the order they were given, then the results; a numpy column each. A list is written as text."""
    columns: dict[str, Any] = {}
    for name, values in axes.items():
        among = np.empty(len(values), dtype=object)
        among[:] = [_written(value) for value in values]
        columns[name] = among[swept.codes[name]]
    return columns | dict(swept.results)


def kept(table: Table, where: str | None) -> Any:
    """A mask of the rows for which the condition holds.

    Raises:
        AdvisorError: the condition cannot be read, or names what is no column.
    """
    count = len(table["fits"])
    if not where:
        return np.ones(count, dtype=np.bool_)
    try:
        condition = expression.read(where)
    except expression.ExpressionError as error:
        detail = f"where: {error}; accepted: comparisons of columns such as 'fits and tensor_parallel <= 4'"
        raise AdvisorError("invalid_value", detail, pointer="/where") from error
    for name in condition.names:
        require_column(name, table, "/where")
    try:
        with np.errstate(all="ignore"):
            return np.broadcast_to(np.asarray(condition({n: _plain(table[n]) for n in condition.names}) != 0), count)
    except (TypeError, ValueError, ArithmeticError) as error:
        detail = f"where={where!r} cannot be computed: words take == and !=, numbers also < and >; nothing divides by 0"
        raise AdvisorError("invalid_value", detail, pointer="/where") from error


def order(table: Table, sort: str | None) -> Any:
    """Row numbers in the order asked for: rows that fit first, the fastest of them first, when nothing is asked."""
    if sort is None:
        return np.lexsort((table["peak_bytes"], -table["tokens_per_s"], ~table["fits"].astype(np.bool_)))
    name = sort.removeprefix("-")
    require_column(name, table, "/sort")
    column = _plain(table[name])
    rows = np.argsort(column.astype(str) if column.dtype == object else column, kind="stable")
    return rows[::-1] if sort.startswith("-") else rows


def require_column(name: str, table: Table, pointer: str) -> None:
    """Refuse a name that is no column.

    Raises:
        AdvisorError: ``invalid_value`` with the nearest names.
    """
    if name not in table:
        close = nearest(name, table)
        detail = f"{name!r} is no column of this sweep; accepted: {', '.join(table)}"
        raise AdvisorError("invalid_value", detail, pointer=pointer, suggestions=close)


def rows_of(table: Table, places: Any) -> tuple[Row, ...]:
    """The rows at these places, as plain values."""
    return tuple(tuple(_value(column[place]) for column in table.values()) for place in places)


def as_csv(columns: Sequence[str], rows: Sequence[Row]) -> str:
    """The rows as comma-separated text with a head line."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def pareto(table: Table, gain: str) -> Any:
    """Places of the fitting rows that no other beats in both memory and ``gain`` (more is better)."""
    fitting = np.flatnonzero(table["fits"].astype(np.bool_))
    memory, best = table["peak_bytes"][fitting], np.asarray(table[gain][fitting], dtype=np.float64)
    front, highest = [], -np.inf
    for index in np.lexsort((-best, memory)):
        if best[index] > highest:
            front.append(fitting[index])
            highest = best[index]
    return front[:MOST_PARETO]


def turning_points(swept: Swept, axes: Axes) -> tuple[str, ...]:
    """For each argument with rising numbers: the last value that fits and the next, which does not.

    Where more of it helps, as of a node's memory, it is the first value that fits and the one before.
    """
    said: list[str] = []
    turns = 0
    for name in axes:
        if _is_rising(axes[name]):
            found = _turns(swept, axes, name)
            turns += len(found[0])
            said += _texts(axes, name, found)[: MOST_TURNING_POINTS - len(said)]
    return (*said, *([f"… and {turns - len(said):,} more"] if turns > len(said) else []))


def _turns(swept: Swept, axes: Axes, name: str) -> tuple[Any, Any, Any]:
    """The combinations of the other arguments along which the answer turns, and the values on both sides."""
    groups = np.zeros(len(swept.codes[name]), dtype=np.int64)
    for other in _others(axes, name):
        groups = groups * len(axes[other]) + swept.codes[other]
    keys, group = np.unique(groups, return_inverse=True)
    values, fits = np.asarray(axes[name], dtype=np.float64)[swept.codes[name]], swept.results["fits"]
    first, last = _ends(len(keys), group[fits], values[fits])
    first_beyond, last_beyond = _ends(len(keys), group[~fits], values[~fits])
    more_helps = last_beyond < first
    inside, beyond = np.where(more_helps, first, last), np.where(more_helps, last_beyond, first_beyond)
    turning = np.isfinite(inside) & np.isfinite(beyond)
    return keys[turning], inside[turning], beyond[turning]


def _ends(count: int, group: Any, values: Any) -> tuple[Any, Any]:
    """The smallest and the largest value of each group; infinite where it has none."""
    smallest, largest = np.full(count, np.inf), np.full(count, -np.inf)
    np.minimum.at(smallest, group, values)
    np.maximum.at(largest, group, values)
    return smallest, largest


def _texts(axes: Axes, name: str, found: tuple[Any, Any, Any]) -> list[str]:
    keys, inside, beyond = (side[:MOST_TURNING_POINTS] for side in found)
    others = _others(axes, name)
    return [
        f"{name}: {last:,.10g} fits, {first:,.10g} does not{_named(int(key), others, axes)}"
        for key, last, first in zip(keys, inside, beyond, strict=True)
    ]


def _others(axes: Axes, name: str) -> list[str]:
    return [other for other in axes if other != name and len(axes[other]) > 1]


def _named(key: int, others: Sequence[str], axes: Axes) -> str:
    """The other arguments' values that a group's number stands for."""
    said: list[str] = []
    for other in reversed(others):
        key, place = divmod(key, len(axes[other]))
        said.insert(0, f"{other}={_written(axes[other][place])}")
    return " with " + ", ".join(said) if said else ""


def _written(value: Any) -> Any:
    """A list as a command line writes it, so that the cell can be sent back; anything else as it is."""
    return ",".join(map(str, value)) if isinstance(value, tuple) else value


def _is_rising(values: Sequence[Any]) -> bool:
    return len(values) > 1 and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)


def _plain(column: Any) -> Any:
    """Numbers as numbers: a column of arguments holds Python objects."""
    if column.dtype != object:
        return column
    if all(isinstance(value, (int, float)) for value in column):
        return column.astype(np.float64)
    return column


def _value(value: Any) -> Any:
    plain = value.item() if isinstance(value, np.generic) else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain
