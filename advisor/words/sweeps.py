"""The text of ``explore`` and ``find_limit``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from advisor.units import format_bytes
from advisor.words.phrases import joined, warning_lines
from advisor.words.tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.types import ExploreAnswer, LimitAnswer
    from advisor.types.sweeps import AtLimit

MOST_ROWS: Final = 20
_IN_BYTES: Final = "bytes"
GOOD: Final = ("comfortable", "fits")
#: Numbers this large are written whole.
WHOLE_FROM: Final = 1000


def explore_text(answer: ExploreAnswer) -> str:
    """The answer of ``explore`` as text."""
    stopped = "" if answer.complete else " The budget ended the sweep early: give a larger budget_s."
    head = (
        f"{answer.judged:,} legal combinations, {answer.total:,} match, {answer.fitting:,} of them fit; "
        f"{answer.refused:,} refused.{stopped}"
    )
    shown = answer.rows[:MOST_ROWS]
    left = answer.total - (answer.csv.count("\n") - 1 if answer.csv else len(shown))
    more = [f"… and {left:,} more: give a larger limit"] if left > 0 else []
    reasons = [f"Refused {count:,}: {reason}" for reason, count in answer.refused_because.items()]
    front = _rows(answer.columns, answer.pareto) if answer.pareto else []
    return joined(
        [
            [head],
            [*([answer.csv.rstrip()] if answer.csv else _rows(answer.columns, shown)), *more],
            ["Where it turns:", *(f"  {text}" for text in answer.turning_points)] if answer.turning_points else [],
            ["No other fitting row is better in both memory and speed:", *front] if front else [],
            reasons,
            warning_lines(answer.warnings, False),
        ]
    )


def _rows(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    """A table whose bytes are written with their unit."""
    if not rows:
        return []
    empty = {
        name
        for index, name in enumerate(columns)
        if name.startswith("host") and {row[index] for row in rows} <= {0, "comfortable"}
    }
    kept = [(index, name) for index, name in enumerate(columns) if name not in empty and name != "fits"]
    head = tuple(name.replace("_bytes", "") for _, name in kept)
    return table([head, *(tuple(_cell(name, row[index]) for index, name in kept) for row in rows)])


def _cell(column: str, value: Any) -> str:
    if _IN_BYTES in column:
        return format_bytes(value) if value >= 0 else f"-{format_bytes(-value)}"
    if isinstance(value, bool) or value is None:
        return {True: "on", False: "off", None: "-"}[value]
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= WHOLE_FROM else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def limit_text(answer: LimitAnswer) -> str:
    """The answer of ``find_limit`` as text."""
    name = answer.of.replace("_", " ")
    head = f"Nothing fits, whatever the {name}." if answer.value is None else f"{name}: {_value(answer.value)}."
    levers = [f"With {lever.argument}={lever.value}: {lever.limit:,}." for lever in answer.next_limits]
    return joined(
        [
            [head, *_side("At the limit", answer.at), *_side("Beyond it", answer.beyond)],
            _stopped_by(answer),
            levers,
            [f"Note: {note}." for note in answer.notes],
            warning_lines(answer.warnings, False),
        ]
    )


def _stopped_by(answer: LimitAnswer) -> list[str]:
    """What grows across the limit; where nothing fits there is no limit, and what is largest is told."""
    if not answer.stopped_by:
        return []
    if answer.value is None:
        return ["Largest there:", *(f"  {each.slot}: {format_bytes(each.bytes_beyond)}" for each in answer.stopped_by)]
    grown = (
        f"  {each.slot}: {format_bytes(each.bytes)} -> {format_bytes(each.bytes_beyond)}" for each in answer.stopped_by
    )
    return ["What stops it:", *grown]


def _side(title: str, at: AtLimit | None) -> list[str]:
    if at is None:
        return []
    reserved, usable = format_bytes(at.reserved_bytes), format_bytes(at.usable_bytes)
    verdict, node = at.verdict.replace("_", " "), at.host_verdict.replace("_", " ")
    told = "" if at.host_verdict in GOOD else f"; {format_bytes(at.host_bytes_per_node)} of the host per node, {node}"
    return [f"{title} ({_value(at.value)}): {reserved} reserved of {usable} usable per GPU, {verdict}{told}."]


def _value(value: int | str) -> str:
    return f"{value:,}" if isinstance(value, int) else value
