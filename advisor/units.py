"""Bytes inside, GiB and GB at the door: the only module where a unit factor stands.

Memory that software reports is counted in GiB (2^30 bytes); memory and bandwidth that vendors print are
counted in GB (10^9 bytes). Inside TrainFit there are only bytes, bytes per second, FLOP and seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from fractions import Fraction
from typing import Final

KIB: Final = 1024
MIB: Final = 1024**2
GIB: Final = 1024**3
TIB: Final = 1024**4
GB: Final = 10**9
TERA: Final = 10**12
MILLION: Final = 10**6
BILLION: Final = 10**9

MINUTE: Final = 60
HOUR: Final = 3_600
DAY: Final = 86_400

_LENGTHS: Final = {"k": KIB, "m": MIB}
_TOTALS: Final = {"k": 1000, "m": MILLION, "b": BILLION, "t": TERA}
_COUNT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([kmbt])", re.IGNORECASE)


def gib(number: float) -> int:
    """Bytes in ``number`` GiB."""
    return round(number * GIB)


def gb(number: float) -> int:
    """Bytes in ``number`` GB (10^9)."""
    return round(number * GB)


def as_gib(count_bytes: float) -> float:
    """Bytes as a number of GiB."""
    return count_bytes / GIB


def format_bytes(count_bytes: float) -> str:
    """Bytes as text in GiB, or in MiB, KiB and bytes when small: ``"20.6 GiB"``."""
    if abs(count_bytes) < KIB / 10:
        return f"{count_bytes:,.0f} B"
    if abs(count_bytes) < MIB / 10:
        return f"{count_bytes / KIB:,.1f} KiB"
    if abs(count_bytes) < GIB / 10:
        return f"{count_bytes / MIB:,.1f} MiB"
    if abs(count_bytes) >= 10_000 * GIB:
        return f"{count_bytes / TIB:,.1f} TiB"
    return f"{count_bytes / GIB:,.1f} GiB"


def format_count(number: float) -> str:
    """Parameters or tokens as text: ``"70.6 B"``, ``"124.4 M"``."""
    if number >= BILLION:
        return f"{number / BILLION:,.1f} B"
    if number >= MILLION:
        return f"{number / MILLION:,.1f} M"
    return f"{number:,.0f}"


def format_gpus(number: int) -> str:
    """GPUs as text: ``"1 GPU"``, ``"8 GPUs"``."""
    return f"{number:,} GPU{'' if number == 1 else 's'}"


def format_seconds(seconds: float) -> str:
    """A duration as text in the unit a person would use."""
    if seconds < 1:
        return f"{seconds * 1000:,.0f} ms"
    if seconds < 2 * MINUTE:
        return f"{seconds:,.1f} s"
    if seconds < 2 * HOUR:
        return f"{seconds / MINUTE:,.1f} min"
    if seconds < 2 * DAY:
        return f"{seconds / HOUR:,.1f} h"
    return f"{seconds / DAY:,.1f} days"


def parse_token_count(text: str) -> int | None:
    """A count written as ``"8k"``, ``"128K"`` or ``"1M"`` (multiples of 1,024); None when it is not one."""
    return _parse(text, _LENGTHS)


def parse_token_total(text: str) -> int | None:
    """All tokens of a training, written as ``"500M"``, ``"1B"`` or ``"14.8T"`` (powers of 10); None when it is none."""
    return _parse(text, _TOTALS)


def _parse(text: str, suffixes: Mapping[str, int]) -> int | None:
    match = _COUNT.fullmatch(text.strip())
    if match is None or match[2].lower() not in suffixes:
        return None
    number = Fraction(match[1]) * suffixes[match[2].lower()]
    return int(number) if number.denominator == 1 else None
