"""What a benchmark returns, and how a duration is taken."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Result:
    """One line of the table.

    Attributes:
        what: what was measured.
        measured: the figure of this machine.
        against: what it is compared with, and the ratio; empty when nothing is.
    """

    what: str
    measured: str
    against: str = ""


def median_seconds(function: Callable[[], Any], *, runs: int) -> float:
    """Median duration of a call, after one that is not counted."""
    return statistics.median(durations(function, runs=runs))


def processor_seconds(function: Callable[[], Any], *, runs: int) -> float:
    """Least processor time of a call, after one that is not counted; the machine's other work is not in it."""
    function()
    return min(_on_the_processor(function) for _ in range(runs))


def _on_the_processor(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def durations(function: Callable[[], Any], *, runs: int) -> list[float]:
    """Seconds of each call, after one that is not counted."""
    function()
    return [_seconds(function) for _ in range(runs)]


def _seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def machine() -> str:
    """Processor, cores, load and Python of this machine, in a line."""
    cores, load = os.cpu_count(), os.getloadavg()[0]
    return f"{_processor()}, {cores} cores, load {load:.1f}; {platform.system()}, Python {platform.python_version()}"


def _processor() -> str:
    facts = Path("/proc/cpuinfo")
    lines = facts.read_text(encoding="utf-8").splitlines() if facts.exists() else []
    named = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())
