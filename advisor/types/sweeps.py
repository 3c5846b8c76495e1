"""Questions about many cases at once, and their answers: sweeps and limits."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from advisor.types.arguments import CaseArguments
from advisor.types.base import Value
from advisor.types.case import Assumption, Layout
from advisor.types.host import Verdict

LimitOf = Literal["micro_batch", "sequence_length", "gpus", "device", "images_per_sample"]


class LimitArguments(Value):
    """Which limit to find."""

    case: CaseArguments = Field(description="the job; what is asked for may be left out of it")
    of: LimitOf = Field(description="the largest micro_batch or sequence_length, the fewest gpus, the smallest device")


class AtLimit(Value):
    """One value of what was varied, and the memory of the worst rank and its node there."""

    value: int | str
    peak_bytes: int
    reserved_bytes: int
    usable_bytes: int
    verdict: Verdict = Field(description="of the GPU")
    host_bytes_per_node: int = Field(description="CPU memory at the instant that needs most, of those that count")
    host_verdict: Verdict


class Growth(Value):
    """A slot of memory on both sides of the limit: of the GPU, or of the node where that alone has no room beyond."""

    slot: str
    bytes: int = Field(description="at the limit; at the smallest value when nothing fits")
    bytes_beyond: int


class NextLimit(Value):
    """Where the limit would be with one lever pulled."""

    argument: str
    value: str
    limit: int


class LimitAnswer(Value):
    """The answer of ``find_limit``."""

    of: LimitOf
    value: int | str | None = Field(description="the last value that fits with the headroom free; null: none does")
    at: AtLimit | None = Field(description="memory there")
    beyond: AtLimit | None = Field(description="memory at the next value, which does not fit; null: all tried fit")
    stopped_by: tuple[Growth, ...] = Field(description="what grows most across the limit, largest first")
    next_limits: tuple[NextLimit, ...]
    layout: Layout | None = Field(description="the layout at the limit")
    tried: int = Field(description="values that were computed")
    notes: tuple[str, ...] = ()
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    versions: dict[str, str]


class ExploreArguments(Value):
    """A sweep: a case, and what varies in it."""

    case: CaseArguments = Field(description="the job that all rows share")
    vary: dict[str, Any] = Field(
        description="argument to a list of values, or 'from..to step', 'from..to *factor': {'micro_batch': '1..16 *2'}"
    )
    where: str | None = Field(
        default=None, max_length=1000, description="keep rows: 'fits and tensor_parallel <= 4', 'margin_bytes > 4e9'"
    )
    sort: str | None = Field(
        default=None,
        max_length=60,
        description="a column, with - before it for descending; fitting and fast first when absent",
    )
    limit: int | None = Field(default=None, ge=1, le=10_000, description="rows shown; 20 when absent")
    budget_s: float | None = Field(default=None, gt=0, le=300, description="seconds to spend; 20 when absent")
    format: Literal["json", "csv"] | None = Field(default=None, description="csv puts the rows into one text")


class ExploreAnswer(Value):
    """The answer of ``explore``."""

    columns: tuple[str, ...]
    rows: tuple[tuple[int | float | str | bool | None, ...], ...]
    csv: str = ""
    total: int = Field(description="rows that match")
    judged: int = Field(description="legal rows computed")
    refused: int = Field(description="combinations that the framework refuses")
    refused_because: dict[str, int] = Field(description="reasons and how often, most frequent first")
    fitting: int
    complete: bool = Field(description="false: the budget ended the sweep early")
    pareto: tuple[tuple[int | float | str | bool | None, ...], ...] = Field(
        description="rows that fit and that no other beats in both memory and speed"
    )
    turning_points: tuple[str, ...]
    seconds: float
    warnings: tuple[str, ...]
    versions: dict[str, str]
