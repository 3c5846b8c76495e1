"""The largest micro-batch or the longest sequence of a layout, and where the limit lies with one lever pulled."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from advisor.constraints.legality import require_legal
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from advisor.limits.edge import Edge, Tried, last_that_fits, limit_answer
from advisor.resolve import resolve
from advisor.types.arguments import CaseArguments
from advisor.types.case import Case
from advisor.types.sweeps import LimitAnswer, LimitOf, NextLimit

LARGEST_MICRO_BATCH = 4096
LONGEST_SEQUENCE = 2**24
#: Sequences are tried in steps of this many tokens: kernels work on tiles of it.
TOKENS_A_STEP = 128
#: What may be pulled to go further without changing what is trained, the cheaper first.
LEVERS = (("loss", "fused"), ("recompute", "full"), ("offload_optimizer", "cpu"))


def largest_job(arguments: CaseArguments, of: LimitOf, *, allow_paths: bool) -> LimitAnswer:
    """The largest value of ``micro_batch`` or ``sequence_length``, everything else as the case says."""
    candidates = candidates_of(arguments, of, allow_paths=allow_paths)
    edge = _edge(arguments, of, candidates, allow_paths)
    notes = [f"tried in steps of {candidates[0]} tokens"] if of == "sequence_length" else []
    notes += [] if edge.outside else [f"no limit up to {candidates[-1]:,}"]
    levers = _next_limits(arguments, of, edge, allow_paths) if edge.outside else ()
    return limit_answer(of, edge, notes, tuple(levers))


def candidates_of(arguments: CaseArguments, of: LimitOf, *, allow_paths: bool) -> Sequence[int]:
    """The legal values, in rising order."""
    case = resolve(arguments.model_copy(update={of: None}), allow_paths=allow_paths)
    return _micro_batches(case) if of == "micro_batch" else _sequences(case)


def measured(arguments: CaseArguments, of: LimitOf, value: int, *, allow_paths: bool) -> Tried:
    """The case with one value of what is asked for.

    Raises:
        AdvisorError: the case is not legal.
    """
    case = resolve(arguments.model_copy(update={of: value}), allow_paths=allow_paths)
    require_legal(case)
    return Tried(value, estimate(case))


def _edge(arguments: CaseArguments, of: LimitOf, candidates: Sequence[int], allow_paths: bool) -> Edge:
    return last_that_fits(candidates, lambda value: measured(arguments, of, value, allow_paths=allow_paths))


def _micro_batches(case: Case) -> Sequence[int]:
    batch = case.training.global_batch
    if not batch:
        return range(1, LARGEST_MICRO_BATCH + 1)
    each = batch // case.layout.data_parallel
    return [n for n in range(1, LARGEST_MICRO_BATCH + 1) if each % n == 0]


def _sequences(case: Case) -> Sequence[int]:
    layout = case.layout
    step = math.lcm(TOKENS_A_STEP, 2 * layout.context_parallel * layout.tensor_parallel)
    return range(step, LONGEST_SEQUENCE + 1, step)


def _next_limits(arguments: CaseArguments, of: LimitOf, edge: Edge, allow_paths: bool) -> Iterator[NextLimit]:
    now = int(edge.inside.value) if edge.inside else 0
    for argument, value in LEVERS:
        if getattr(arguments, argument) is not None:
            continue
        pulled = arguments.model_copy(update={argument: value})
        try:
            further = _edge(pulled, of, candidates_of(pulled, of, allow_paths=allow_paths), allow_paths).inside
        except AdvisorError:
            continue  # the framework has no such lever
        if further and int(further.value) > now:
            yield NextLimit(argument=argument, value=value, limit=int(further.value))
