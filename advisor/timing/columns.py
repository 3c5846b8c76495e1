"""Seconds of a step for many layouts at once, by the same formulas."""

from __future__ import annotations

from functools import reduce
from typing import Any

from advisor.columnwise import at_least
from advisor.timing.job import Job
from advisor.timing.stage import candidate_stages, stage_time
from advisor.types.case import Case
from advisor.types.columns import LAYER_COLUMNS, Columns


def step_seconds(case: Case, columns: Columns) -> Any:
    """Seconds of a step of every layout in the columns; what columns do not hold is the case's own."""
    import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

    seconds = np.zeros(len(columns))
    for rows, part in columns.parts():
        seconds[rows] = _part_seconds(case, part)
    return seconds


def _part_seconds(case: Case, columns: Columns) -> Any:
    kinds, rows = columns.distinct(LAYER_COLUMNS)
    job = Job(case, columns, kinds=Job(case, kinds), rows=rows)
    return reduce(at_least, (stage_time(job, stage).seconds for stage in candidate_stages(case, columns)))
