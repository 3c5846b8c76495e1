"""Seconds of a step for many layouts at once, by the same formulas."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any

from advisor.columnwise import at_least
from advisor.timing.job import Job
from advisor.timing.stage import candidate_stages, stage_time
from advisor.types.case import Case
from advisor.types.columns import Columns

#: Rows evaluated at once: the working arrays of a chunk stay in the processor's cache.
CHUNK_ROWS = 8192


def step_seconds(case: Case, columns: Columns) -> Any:
    """Seconds of a step of every layout in the columns; what columns do not hold is the case's own."""
    import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

    starts = range(0, len(columns), CHUNK_ROWS)
    chunks = [_chunk_seconds(case, columns.take(slice(start, start + CHUNK_ROWS))) for start in starts]
    return np.concatenate(chunks) if chunks else np.zeros(0)


def _chunk_seconds(case: Case, columns: Columns) -> Any:
    job = Job(case, columns)
    stages = _distinct(candidate_stages(case, columns))
    return reduce(at_least, (stage_time(job, stage).seconds for stage in stages))


def _distinct(stages: Iterable[Any]) -> list[Any]:
    """Columns of stages, each once: where layers divide evenly the fuller stage is the last."""
    kept: list[Any] = []
    for stage in stages:
        if not any((stage == other).all() for other in kept):
            kept.append(stage)
    return kept
