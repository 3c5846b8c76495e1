"""One formula, a hundred thousand layouts: the terms and the whole estimate, on columns and one at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import Any

import numpy as np

from advisor.choices import choices
from advisor.estimate import estimate
from advisor.judge import judge
from advisor.phases import LAYER_SLOTS
from advisor.placement import Place
from advisor.resolve import resolve
from advisor.symbols import Values
from advisor.terms import select
from advisor.types import CaseArguments
from advisor.types.case import Case, Layout
from advisor.types.columns import PART_ROWS, Columns
from benchmarks.measure import Result, median_seconds

LAYOUTS = 100_000
ALONE = 200
VARIED = {
    "tensor_parallel": (1, 2, 4, 8),
    "pipeline_parallel": (1, 2, 3, 4, 8),
    "context_parallel": (1, 2),
    "data_parallel_shard": (1, 2, 8, 32),
    "zero_stage": (0, 1),
    "micro_batch": (1, 2, 4),
    "gradient_accumulation": (1, 8, 32),
    "recompute": (0, 1, 7),
}


def activation_terms() -> Result:
    """All terms of what a layer of Llama-3-70B keeps, without stages and phases around them."""
    many, alone = layouts(), layouts().take(slice(ALONE))
    rows = [Layout(**alone.row(index)) for index in range(ALONE)]
    held = [kept_by_layer(one) for one in rows]
    assert np.array_equal(np.broadcast_to(kept_by_layer(alone), ALONE), held)
    columns = median_seconds(lambda: [kept_by_layer(chunk) for chunk in chunks(many)], runs=5)
    scalars = median_seconds(lambda: [kept_by_layer(one) for one in rows], runs=3)
    return _compared("activation terms of a layer", columns, scalars)


def whole_estimate() -> Result:
    """The peak over all phases and the stages that can bind."""
    many, alone = layouts(), layouts().take(slice(ALONE))
    cases = [job().model_copy(update={"layout": Layout(**alone.row(index))}) for index in range(ALONE)]
    assert np.array_equal(judge(job(), alone).peak_bytes, [estimate(one).peak_bytes for one in cases])
    columns = median_seconds(lambda: judge(job(), many), runs=3)
    scalars = median_seconds(lambda: [estimate(one).peak_bytes for one in cases], runs=1)
    return _compared("peak on the worst rank", columns, scalars)


@cache
def job() -> Case:
    """Llama-3-70B in Megatron on 32 GPUs."""
    arguments = {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron"}
    return resolve(CaseArguments(**arguments, sequence_length=8192), allow_paths=False)


@cache
def layouts() -> Columns:
    """The job's layout with its degrees drawn at random, the same ones each time; not all of them legal."""
    draw = np.random.default_rng(0)
    fixed = {field.name: getattr(job().layout, field.name) for field in fields(Columns)}
    held = {name: np.full(LAYOUTS, 0.0 if isinstance(value, str) else float(value)) for name, value in fixed.items()}
    varied = {name: draw.choice(np.asarray(values, dtype=float), LAYOUTS) for name, values in VARIED.items()}
    return Columns(**(held | varied | {"sequence_parallel": (varied["tensor_parallel"] > 1) * 1.0}))


def chunks(columns: Columns) -> Iterator[Columns]:
    """The rows in pieces whose working arrays stay in the processor's cache."""
    for start in range(0, len(columns), PART_ROWS):
        yield columns.take(slice(start, start + PART_ROWS))


def kept_by_layer(layout: Any) -> Any:
    """Bytes that one layer keeps for its backward pass; ``layout`` is a Layout or Columns."""
    ((group, _), *_) = Place(job(), layout).tables.groups
    terms = select(choices(job(), masked=group.masked) | group.choices)
    values = Values(Place(job(), layout, 0, group))
    return sum(terms[slot](values) for slot in LAYER_SLOTS if slot in terms)


def _compared(what: str, columns: float, scalars: float) -> Result:
    per_second, one_by_one = LAYOUTS / columns, ALONE / scalars
    return Result(
        what=f"{what}, {LAYOUTS:,} layouts as columns",
        measured=f"{per_second:,.0f} layouts/s",
        against=f"{one_by_one:,.0f} layouts/s one at a time, equal figures: {per_second / one_by_one:,.0f}x",
    )
