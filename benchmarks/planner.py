"""The planner's own speed: legal layouts judged for memory and time, a sweep, and searches on more and more GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

import advisor
from advisor.constraints.legality import legal_rows
from advisor.constraints.rulebook import law
from advisor.judge import judge
from advisor.resolve import resolve
from advisor.search.batch import with_batch
from advisor.search.space import cores_of, with_choices
from advisor.timing import step_seconds
from advisor.types import CaseArguments
from advisor.types.case import Case
from advisor.types.columns import Columns
from benchmarks.measure import Result, median_seconds, processor_seconds

LAYOUTS = 100_000
#: The fastest of so many counts: what else the processor's caches do can only add to it.
RUNS = 7
#: Calculon (commit caa4b11) evaluates so many layouts a second on one core of such a machine.
CALCULON = 35
JUDGED: dict[str, dict[str, Any]] = {
    "llama-3-70b on 1,024 GPUs": {"model": "llama-3-70b", "hardware": "128x8 H100-80GB", "sequence_length": "8k"},
    "deepseek-v3 on 2,048 GPUs": {"model": "deepseek-v3", "hardware": "256x8 H800-80GB"},
}
#: 98,304 cases on 128 GPUs, legal or not.
SWEPT: dict[str, Any] = {
    "tensor_parallel": "1..8 *2",
    "pipeline_parallel": "1..8 *2",
    "context_parallel": "1..8 *2",
    "micro_batch": "1..32 *2",
    "gradient_accumulation": "1..128 *2",
    "zero_stage": [0, 1],
    "recompute": ["none", "near_free", "selective", "full"],
    "sequence_length": "4k..32k *2",
}
NODES = (1, 4, 16, 64, 256, 1024, 2048)


def layouts_judged() -> Iterator[Result]:
    """Legal layouts of a search, memory of each stage that can bind and phase, then memory and time together."""
    for name, arguments in JUDGED.items():
        case = with_batch(resolve(CaseArguments(**arguments, framework="megatron"), allow_paths=False))
        columns = legal_layouts(case)
        memory = LAYOUTS / processor_seconds(partial(judge, case, columns), runs=RUNS)
        both = LAYOUTS / processor_seconds(partial(_judge_and_time, case, columns), runs=RUNS)
        yield Result(
            what=f"legal layouts judged on one core, {name}",
            measured=f"{both:,.0f} layouts/s for memory and time, {memory:,.0f} for memory",
            against=f"Calculon's {CALCULON} layouts/s: {both / CALCULON:,.0f}x",
        )


def legal_layouts(case: Case) -> Columns:
    """Layouts that a search looks at, repeated up to the wanted count."""
    choices = [choice for rung in law().ladder.rungs[:2] for choice in rung.choices]
    columns = with_choices(case, cores_of(case, law().ladder), choices)
    legal = np.flatnonzero(legal_rows(case, columns))
    return columns.take(np.resize(legal, LAYOUTS))


def _judge_and_time(case: Case, columns: Columns) -> None:
    judge(case, columns)
    step_seconds(case, columns)


def sweep() -> Result:
    """A hundred thousand cases through the public function, with table, Pareto front and turning points."""
    case = {"model": "llama-3-8b", "hardware": "16x8 H100-80GB", "framework": "megatron"}
    asked = partial(advisor.explore, case=case, vary=SWEPT, budget_s=60)
    seconds, answer = processor_seconds(asked, runs=2), asked()
    assert answer.complete
    cases = answer.judged + answer.refused
    return Result(
        f"explore, {cases:,} cases", f"{seconds:,.2f} s of one core", f"{answer.judged:,} of them legal and computed"
    )


def growth() -> Result:
    """One search on one GPU and on more and more nodes, up to 16,384 GPUs."""
    sizes = {1: "1x1", **{8 * nodes: f"{nodes}x8" for nodes in NODES}}
    taken = {gpus: _searched(f"{shape} H100-80GB") for gpus, shape in sizes.items()}
    said = ", ".join(f"{gpus:,}: {seconds:.2f} s" for gpus, seconds in taken.items())
    return Result("recommend_setup, llama-3-8b at 8k, by GPUs", said)


def _searched(hardware: str) -> float:
    asked = partial(advisor.recommend_setup, model="llama-3-8b", hardware=hardware, sequence_length="8k")
    return median_seconds(asked, runs=1)
