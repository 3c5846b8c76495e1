"""The search space written a second time, plainly and with nothing left out, for tests/test_planner.py."""

import itertools
from dataclasses import fields
from functools import partial

import numpy as np

from advisor.constraints.expression import divisors
from advisor.constraints.legality import legal_rows
from advisor.constraints.rulebook import law
from advisor.judge import judge
from advisor.resolve import resolve
from advisor.search import cost
from advisor.search.batch import with_batch
from advisor.search.choose import completed
from advisor.search.room import limit_bytes
from advisor.search.space import VIRTUAL_STAGES
from advisor.types import CaseArguments, Layout
from advisor.types.columns import OFFLOAD_TARGETS, RECOMPUTE_POLICIES, Columns

LEVERS = ("recompute", "offload_optimizer", "offload_parameters", "offload_activations", "offload_fraction")


def job(**arguments):
    """A case as a search sees it: with a global batch."""
    return with_batch(resolve(CaseArguments(**arguments), allow_paths=False))


def every_layout(case, rung):
    """All layouts of a rung as dictionaries: nothing left out but what divides nothing, legal or not."""
    for size in filter(partial(_as_given, case), _sizes(case)):
        for choice in rung.choices:
            if case.policy.law in choice.laws:
                levers = {name: getattr(choice, name) for name in LEVERS}
                of_stage = -(-case.model.layers // size["pipeline_parallel"])
                layers = int(np.ceil(choice.recompute_share * of_stage))
                yield {**size, **levers, "recompute_layers": layers}


def _sizes(case):
    """Ways of dividing the work, with both settings of whatever is a switch."""
    gpus, batch, ladder = case.cluster.gpus, case.training.global_batch, law().ladder
    tokens, experts = case.training.sequence_length, case.model.experts
    micro_batches = [2**n for n in range(10) if 2**n <= ladder.largest_micro_batch]
    for tensor, pipeline, context in itertools.product(divisors(gpus), repeat=3):
        data, left = divmod(gpus, tensor * pipeline * context)
        free = "context_parallel" in case.free
        too_short = free and context > 1 and context * ladder.shortest_local_sequence > tokens
        if left or pipeline > case.model.layers or case.model.attention.heads % tensor or too_short:
            continue
        longest = -(-case.model.layers // pipeline)
        pieces = [n for n in VIRTUAL_STAGES if n == 1 or (pipeline > 1 and longest % n == 0)]
        stages = list(itertools.product(pieces, {0, max(case.model.layers - longest * (pipeline - 1), 1)}))
        spread = [n for n in divisors(gpus // pipeline) if experts.count % n == 0] if experts else [1]
        switches = ((False, True) if tensor > 1 else (False,), (False, True), range(4))
        for shard, (virtual, last), expert, micro in itertools.product(divisors(data), stages, spread, micro_batches):
            if batch % (micro * data):
                continue
            for sequence, reshard, zero in itertools.product(*switches):
                yield {
                    "tensor_parallel": tensor,
                    "sequence_parallel": sequence,
                    "pipeline_parallel": pipeline,
                    "virtual_stages": virtual,
                    "last_stage_layers": last,
                    "context_parallel": context,
                    "expert_parallel": expert,
                    "data_parallel_replicate": data // shard,
                    "data_parallel_shard": shard,
                    "zero_stage": zero,
                    "reshard_after_forward": reshard,
                    "micro_batch": micro,
                    "gradient_accumulation": batch // (micro * data),
                }


def _as_given(case, layout):
    """Whether the layout has what the case holds."""
    free = case.free | {"last_stage_layers"}
    return all(name in free or value == getattr(case.layout, name) for name, value in layout.items())


def columns_of(case, layouts):
    """Dictionaries as columns; what they do not name is the case's."""
    held = {**case.layout.model_dump(), "last_stage_layers": case.layout.last_stage_layers}
    names = [field.name for field in fields(Columns)]
    rows = [[_number(layout.get(name, held[name])) for name in names] for layout in layouts]
    return Columns(**dict(zip(names, np.array(rows, dtype=float).reshape(-1, len(names)).T, strict=True)))


def _number(value):
    if not isinstance(value, str):
        return value
    return (RECOMPUTE_POLICIES if value in RECOMPUTE_POLICIES else OFFLOAD_TARGETS).index(value)


def cheapest(case, columns):
    """The lowest cost among the columns' legal layouts that fit with the headroom; None where none does."""
    legal = columns.take(legal_rows(case, columns))
    judged = judge(case, legal)
    fits = judged.reserved_bytes <= limit_bytes(case, judged.usable_bytes)
    return float(cost.total(case, legal.take(fits)).min()) if fits.any() else None


def layout_of(case, values):
    """One layout out of a dictionary."""
    named = {name: value for name, value in values.items() if name != "last_stage_layers"}
    return completed(case, Layout(**{**case.layout.model_dump(), **named}), values["last_stage_layers"])
