"""Sweeps: many cases in one question, as a table with its Pareto front and turning points."""

from __future__ import annotations

import time

from advisor import budget
from advisor.sweep import table as rows
from advisor.sweep.axes import read_axes
from advisor.sweep.grid import sweep
from advisor.types.sweeps import ExploreAnswer, ExploreArguments
from advisor.versions import versions

DEFAULT_ROWS, DEFAULT_SECONDS = 20, 20.0
MOST_REASONS = 5


def explore(request: ExploreArguments, *, allow_paths: bool) -> ExploreAnswer:
    """Every combination of the varied arguments, judged.

    Raises:
        AdvisorError: the case, an axis, the condition or the order cannot be understood; or nothing can be computed.
    """
    started = time.perf_counter()
    axes = read_axes(request.vary)
    seconds = request.budget_s or min(DEFAULT_SECONDS, budget.seconds_left())
    swept = sweep(request.case, axes, seconds=seconds, allow_paths=allow_paths)
    everything = rows.table_of(swept, axes)
    matching = rows.kept(everything, request.where)
    table = {name: column[matching] for name, column in everything.items()}
    shown = rows.rows_of(table, rows.order(table, request.sort)[: request.limit or DEFAULT_ROWS])
    columns = tuple(table)
    return ExploreAnswer(
        columns=columns,
        rows=() if request.format == "csv" else shown,
        csv=rows.as_csv(columns, shown) if request.format == "csv" else "",
        total=int(matching.sum()),
        judged=len(matching),
        refused=swept.refused.total(),
        refused_because=dict(swept.refused.most_common(MOST_REASONS)),
        fitting=int(table["fits"].sum()),
        complete=swept.complete,
        pareto=rows.rows_of(table, rows.pareto(table, "tokens_per_s")),
        turning_points=rows.turning_points(swept, axes),
        seconds=round(time.perf_counter() - started, 3),
        warnings=swept.warnings,
        versions=versions(),
    )
