"""A sweep computed: rows of one job that differ only in layout are judged together, as columns."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from advisor import certainty, progress
from advisor.constraints.legality import broken_rows
from advisor.errors import AdvisorError
from advisor.judge import judge
from advisor.node_memory import GRADES, host_grade
from advisor.resolve import resolve
from advisor.search.room import limit_bytes, times_too_large
from advisor.sweep.axes import Axes
from advisor.timing import step_seconds, whole_training
from advisor.types.arguments import CaseArguments
from advisor.types.case import Case, Layout
from advisor.types.columns import OFFLOAD_TARGETS, RECOMPUTE_POLICIES, Columns

#: Layout arguments from which nothing else in a case follows: a case is put together once for all their values.
INNER = (
    "micro_batch", "gradient_accumulation", "recompute", "offload_optimizer", "offload_parameters",
    "offload_activations",
)  # fmt: skip
#: Recompute policies that need no further argument.
PLAIN_POLICIES = ("none", "near_free", "selective", "full")
COLUMNS = tuple(column.name for column in fields(Columns))
VERDICTS = np.asarray(GRADES)
RESULTS = (
    "peak_bytes", "reserved_bytes", "margin_bytes", "host_bytes_per_node", "host_peak_bytes_per_node", "verdict",
    "host_verdict", "fits", "step_time_s", "tokens_per_s",
)  # fmt: skip
#: Rows judged at once: more would wait long for an end of the time, and hold much memory.
MOST_TOGETHER = 16_384
#: Results of a case that says how many tokens to train on, and what a GPU hour costs.
OF_THE_WHOLE = ("days", "gpu_hours", "cost")
NO_WHOLE_BATCH = "the global batch is no multiple of micro-batch times data parallel"

Table = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Swept:
    """The rows of a sweep.

    Attributes:
        codes: for each varied argument the place of each row's value among the argument's values.
        results: a numpy column for each of ``RESULTS``, and for what is known of ``OF_THE_WHOLE``.
        refused: how often each reason refused a combination.
        complete: False when time ran out.
    """

    codes: Table
    results: Table
    refused: Counter[str]
    complete: bool
    warnings: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Rows:
    """Combinations of one resolved case: codes of the varied arguments, and the layouts as columns."""

    case: Case
    codes: Table
    layouts: Table


@dataclass
class _Log:
    """What is noted on the way."""

    refused: Counter[str] = field(default_factory=Counter)
    warnings: dict[str, None] = field(default_factory=dict)
    first_error: AdvisorError | None = None
    complete: bool = True


def sweep(arguments: CaseArguments, axes: Axes, *, seconds: float, allow_paths: bool) -> Swept:
    """Every combination of the axes that the framework accepts.

    Raises:
        AdvisorError: no combination can be computed; the first reason is given.
    """
    log = _Log()
    parts = list(_judged(_in_time(_combinations(arguments, axes, log, allow_paths), seconds, log), log))
    if not parts and log.first_error:
        raise log.first_error
    known = [name for name in OF_THE_WHOLE if parts and all(name in part for part in parts)]
    return Swept(
        _joined(parts, axes), _joined(parts, (*RESULTS, *known)), log.refused, log.complete, tuple(log.warnings)
    )


def _joined(parts: list[Table], names: Iterable[str]) -> Table:
    nothing = np.zeros(0, dtype=np.int64)
    return {name: np.concatenate([part[name] for part in parts]) if parts else nothing for name in names}


def _in_time(rows: Iterator[_Rows], seconds: float, log: _Log) -> Iterator[_Rows]:
    """Rows until the time is over; at least the first."""
    ends = time.monotonic() + seconds
    for each in rows:
        yield each
        if time.monotonic() > ends:
            log.complete = next(rows, None) is None
            return


def _combinations(arguments: CaseArguments, axes: Axes, log: _Log, allow_paths: bool) -> Iterator[_Rows]:
    """One case for each combination of the outer axes; those of the layout vary fastest, so that jobs stay together."""
    inner = {name: values for name, values in axes.items() if _is_inner(name, values)}
    outer = sorted((name for name in axes if name not in inner), key=lambda name: name in Layout.model_fields)
    for places in itertools.product(*(range(len(axes[name])) for name in outer)):
        fixed = {name: axes[name][place] for name, place in zip(outer, places, strict=True)}
        try:
            case = resolve(arguments.model_copy(update={**fixed, **_first(inner)}), allow_paths=allow_paths)
        except AdvisorError as error:
            log.first_error = log.first_error or error
            log.refused[error.detail] += _size(inner)
            continue
        log.warnings |= dict.fromkeys(case.warnings)
        yield from _rows(case, dict(zip(outer, places, strict=True)), inner, log)


def _is_inner(name: str, values: tuple[Any, ...]) -> bool:
    return name in INNER and None not in values and (name != "recompute" or set(values) <= set(PLAIN_POLICIES))


def _first(inner: Axes) -> Mapping[str, Any]:
    """A micro-batch of one divides any batch; whether the others do is judged row by row."""
    return {name: 1 if name == "micro_batch" else values[0] for name, values in inner.items()}


def _size(axes: Axes) -> int:
    return int(np.prod([len(values) for values in axes.values()], dtype=np.int64))


def _rows(case: Case, fixed: Mapping[str, int], inner: Axes, log: _Log) -> Iterator[_Rows]:
    """All combinations of the inner axes whose batch is whole, piece by piece."""
    sizes, count = [len(values) for values in inner.values()], _size(inner)
    for start in range(0, count, MOST_TOGETHER):
        rows = np.arange(start, min(start + MOST_TOGETHER, count))
        places = dict(zip(inner, np.unravel_index(rows, sizes), strict=True)) if inner else {}
        yield _piece(case, fixed, inner, places, len(rows), log)


def _piece(case: Case, fixed: Mapping[str, int], inner: Axes, places: Table, count: int, log: _Log) -> _Rows:
    layouts = {name: np.full(count, _number(getattr(case.layout, name))) for name in COLUMNS}
    layouts |= {name: np.asarray([_number(v) for v in values])[places[name]] for name, values in inner.items()}
    whole = _accumulation(case, layouts, given="gradient_accumulation" in inner)
    if not whole.all():
        log.refused[NO_WHOLE_BATCH] += int((~whole).sum())
    codes = {**{name: np.full(count, place) for name, place in fixed.items()}, **places}
    return _Rows(case, _taken(codes, whole), _taken(layouts, whole))


def _accumulation(case: Case, layouts: dict[str, Any], *, given: bool) -> Any:
    """Fills in accumulation from the global batch; True where it is whole."""
    batch = case.training.global_batch
    per_pass = layouts["micro_batch"] * case.layout.data_parallel
    if not batch:
        return np.ones(len(per_pass), dtype=np.bool_)
    if given:
        return layouts["gradient_accumulation"] * per_pass == batch
    layouts["gradient_accumulation"] = np.maximum(batch // per_pass, 1)
    return batch % per_pass == 0


def _number(value: Any) -> float:
    if isinstance(value, str):
        return float((RECOMPUTE_POLICIES if value in RECOMPUTE_POLICIES else OFFLOAD_TARGETS).index(value))
    return float(value)


def _taken(columns: Table, rows: Any) -> Table:
    return {name: column[rows] for name, column in columns.items()}


def _judged(rows: Iterator[_Rows], log: _Log) -> Iterator[Table]:
    """The legal rows with their results, all layouts of one job at once."""
    for together in _by_job(rows):
        case = together[0].case
        columns = Columns(**{name: np.concatenate([each.layouts[name] for each in together]) for name in COLUMNS})
        codes = {name: np.concatenate([each.codes[name] for each in together]) for name in together[0].codes}
        reasons = broken_rows(case, columns)
        legal = reasons == ""
        progress.tell(f"{np.count_nonzero(legal):,} legal layouts")
        found, counts = np.unique(reasons[~legal], return_counts=True)
        log.refused.update({str(reason): int(count) for reason, count in zip(found, counts, strict=True)})
        yield {**_taken(codes, legal), **_results(case, columns.take(legal))}


def _by_job(rows: Iterator[_Rows]) -> Iterator[list[_Rows]]:
    """Neighbours whose cases differ only in what columns hold, as many as are judged at once."""
    together: list[_Rows] = []
    count = 0
    for each in rows:
        if together and (count >= MOST_TOGETHER or not _same_job(together[0].case, each.case)):
            yield together
            together, count = [], 0
        together.append(each)
        count += len(each.layouts["micro_batch"])
    if together:
        yield together


def _same_job(one: Case, other: Case) -> bool:
    held = (one.model is other.model or one.model == other.model) and one.training == other.training
    apart = [name for name in Layout.model_fields if name not in COLUMNS]
    same_layout = all(getattr(one.layout, name) == getattr(other.layout, name) for name in apart)
    return held and same_layout and one.cluster == other.cluster and one.policy == other.policy


def _results(case: Case, columns: Columns) -> Table:
    judged = judge(case, columns)
    usable, limit, reserved = judged.usable_bytes, limit_bytes(case, judged.usable_bytes), judged.reserved_bytes
    excess = certainty.BANDS[certainty.evidence(case)][1]
    seconds = step_seconds(case, columns)
    sequences = columns.micro_batch * columns.gradient_accumulation * columns.data_parallel
    tokens_per_s = sequences * case.training.sequence_length / seconds
    least = np.round(judged.peak_bytes * (1 + case.training.fragmentation))
    most, nvme = judged.most_host_bytes, judged.nvme_bytes
    host = host_grade(case, most=most, offloaded=judged.host_bytes, nvme=nvme)
    grade = (reserved * (1 + excess) > limit) * 1 + (reserved > limit) * 1 + (least > usable) * 1
    return {
        "peak_bytes": judged.peak_bytes,
        "reserved_bytes": reserved,
        "margin_bytes": usable - reserved,
        "host_bytes_per_node": judged.host_bytes,
        "host_peak_bytes_per_node": most,
        "verdict": VERDICTS[grade],
        "host_verdict": np.broadcast_to(VERDICTS[host], len(reserved)),
        "fits": times_too_large(case, limit, reserved=reserved, most=most, nvme=nvme) <= 1,
        "step_time_s": seconds,
        "tokens_per_s": tokens_per_s,
        **(whole_training(case.training, case.layout.world, tokens_per_s) if case.training.train_tokens else {}),
    }
