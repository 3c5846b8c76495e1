"""Rounded figures that still add up, and plain tables of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor import units

if TYPE_CHECKING:
    from collections.abc import Sequence

_DECIMALS: Final = ((10, 1), (1, 2), (0, 3))  # from this many GiB on, so many decimals


def gib(count_bytes: int, scale: int) -> str:
    """Bytes as a number of GiB, with the decimals that suit figures as large as ``scale``."""
    return f"{units.as_gib(count_bytes):,.{_decimals(scale)}f}"


def memory_rows(parts: Sequence[tuple[str, int]], total: int, *, most: int) -> list[tuple[str, str]]:
    """Names and GiB, largest first, the rest as "other", then the total: the printed figures add up to it.

    Args:
        parts: names and bytes, which add up to ``total``.
        total: bytes of the whole.
        most: rows to show by name.
    """
    ordered = sorted(parts, key=lambda part: -part[1])
    shown = ordered[:most]
    rest = total - sum(size for _, size in shown)
    rows = [*shown, ("other", rest)] if rest else shown
    figures = rounded_to_sum([size for _, size in rows], total)
    named = [(name, figure) for (name, _), figure in zip(rows, figures, strict=True)]
    return [*named, ("peak", gib(total, total))]


def rounded_to_sum(parts: Sequence[int], total: int) -> list[str]:
    """GiB figures whose printed sum is the printed total: what rounding leaves goes to the largest remainders."""
    decimals = _decimals(total)
    unit = 10**decimals
    exact = [units.as_gib(part) * unit for part in parts]
    floors = [int(value // 1) for value in exact]
    missing = round(float(f"{units.as_gib(total):.{decimals}f}") * unit) - sum(floors)
    by_remainder = sorted(range(len(parts)), key=lambda index: floors[index] - exact[index])
    for index in by_remainder[: max(missing, 0)]:
        floors[index] += 1
    return [f"{floor / unit:,.{decimals}f}" for floor in floors]


def table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Rows as aligned lines: the first column to the left, the others to the right."""
    if not rows:
        return []
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  "
        + row[0].ljust(widths[0])
        + "".join(f"  {cell.rjust(width)}" for cell, width in zip(row[1:], widths[1:], strict=True))
        for row in rows
    ]


def _decimals(scale: int) -> int:
    size = units.as_gib(abs(scale))
    return next(decimals for least, decimals in _DECIMALS if size >= least)
