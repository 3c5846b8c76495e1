"""All layouts that are worth judging: the factorisations of the GPU count, crossed with the levers of a rung.

What a user gave is fixed. What cannot win is left out here only where that is certain: a size that divides nothing, a
ZeRO stage 0 beside ranks that could share states for nothing, tensor parallel without the sequence parallel that comes
with it, shard groups of Megatron's that are neither all ranks nor one fast domain's (tests/test_planner.py judges whole
spaces without these). Experts are cut over tensor ranks only where a user says so: they are spread first. Everything
else is the constraints' to refuse, each as soon as what it speaks of is chosen, so that nothing illegal is spread out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from advisor.constraints.expression import divisors
from advisor.constraints.facts import OF_THE_JOB, facts
from advisor.constraints.legality import legal_rows
from advisor.constraints.rules import Choice
from advisor.types.columns import OFFLOAD_TARGETS, RECOMPUTE_POLICIES, Columns

if TYPE_CHECKING:
    from advisor.constraints.rules import Ladder
    from advisor.types.case import Case

#: Stages a rank may interleave; more buys little and sends more.
VIRTUAL_STAGES = (1, 2, 3, 4, 5, 6, 8)
MODEL_PARALLEL = ("tensor_parallel", "pipeline_parallel", "context_parallel")
CORE = (
    *MODEL_PARALLEL, "data_parallel_replicate", "data_parallel_shard", "zero_stage", "expert_parallel",
    "virtual_stages", "last_stage_layers", "micro_batch",
)  # fmt: skip
#: What a rung's choices set; all else is chosen before them.
LEVERS = (*Choice.model_fields, "recompute_layers")


def cores_of(case: Case, ladder: Ladder) -> Columns:
    """Every legal way of dividing the work over the GPUs; what a rung's choices set is as in the case."""
    import numpy as np  # noqa: PLC0415 - a single estimate needs no numpy

    divided = np.array(list(_model_parallel(case, ladder)), dtype=np.float64).reshape(-1, len(MODEL_PARALLEL))
    lawful = legal_rows(case, _columns(case, MODEL_PARALLEL, divided), known={*OF_THE_JOB, *MODEL_PARALLEL})
    blocks = [_block(case, ladder, *(int(degree) for degree in row)) for row in divided[lawful]]
    core = _derived(case, _columns(case, CORE, np.concatenate([np.zeros((0, len(CORE))), *blocks])))
    return core.take(legal_rows(case, core, known={*facts()} - {*LEVERS}))


def with_choices(case: Case, cores: Columns, choices: Sequence[Choice]) -> Columns:
    """The layouts of one rung: every way of dividing the work with each of the rung's choices."""
    import numpy as np  # noqa: PLC0415

    kinds = _distinct(case, choices)
    columns = cores.take(np.repeat(np.arange(len(cores)), len(kinds)))
    levers = {name: np.tile([kind[name] for kind in kinds], len(cores)) for name in kinds[0]}
    share = levers.pop("recompute_share")
    if "recompute_layers" in case.free:
        levers["recompute_layers"] = np.ceil(share * np.ceil(case.model.layers / columns.pipeline_parallel))
    return replace(columns, **levers)


def _distinct(case: Case, choices: Sequence[Choice]) -> list[dict[str, float]]:
    """A rung's choices as numbers, with what the user gave in place of the rung's own; each once."""
    found: dict[tuple[tuple[str, float], ...], dict[str, float]] = {}
    for choice in choices:
        levers = choice.model_dump(exclude={"laws", "recompute_share"})
        numbers = {
            name: _number(value if name in case.free else getattr(case.layout, name)) for name, value in levers.items()
        }
        numbers["recompute_share"] = choice.recompute_share
        found[tuple(numbers.items())] = numbers
    return list(found.values())


def _number(value: Any) -> float:
    """A field as the number its column holds."""
    if isinstance(value, str):
        words = RECOMPUTE_POLICIES if value in RECOMPUTE_POLICIES else OFFLOAD_TARGETS
        return float(words.index(value))
    return float(value)


def _columns(case: Case, names: Sequence[str], rows: Any) -> Columns:
    """Rows of these arguments, all others as in the case."""
    import numpy as np  # noqa: PLC0415

    held = {field.name: np.full(len(rows), _number(getattr(case.layout, field.name))) for field in fields(Columns)}
    return Columns(**held | dict(zip(names, rows.T, strict=True)))


def _derived(case: Case, columns: Columns) -> Columns:
    """Fill in what follows from the rest, where it is free."""
    import numpy as np  # noqa: PLC0415

    found: dict[str, Any] = {}
    if "sequence_parallel" in case.free:
        able = case.training.framework not in ("deepspeed", "fsdp1", "ddp", "single")
        found["sequence_parallel"] = (columns.tensor_parallel > 1) * float(able)
    if "reshard_after_forward" in case.free:
        keeps = (columns.zero_stage == 2) | (_titan(case) & (columns.pipeline_parallel > 1))  # noqa: PLR2004 - ZeRO-2
        found["reshard_after_forward"] = (~keeps) * 1.0
    if "gradient_accumulation" in case.free and case.training.global_batch:
        samples = columns.micro_batch * columns.data_parallel
        found["gradient_accumulation"] = np.maximum(case.training.global_batch // samples, 1)
    return replace(columns, **found)


def _titan(case: Case) -> bool:
    """Torchtitan keeps the gathered weights of a pipeline stage."""
    return case.training.framework == "torchtitan"


def _block(case: Case, ladder: Ladder, tensor: int, pipeline: int, context: int) -> Any:
    """Every way of dividing the work with these degrees of model parallelism, as rows of ``CORE``."""
    data = case.cluster.gpus // (tensor * pipeline * context)
    shards = [
        (replicate, shard, zero)
        for replicate, shard in _data_splits(case, data, tensor * context)
        for zero in _zero_stages(case, shard * context)
    ]
    experts, stages = _experts(case, pipeline), _stages(case, pipeline)
    micro_batches = _micro_batches(case, data, ladder)
    return _crossed([(tensor, pipeline, context)], shards, _single(experts), stages, _single(micro_batches))


def _single(values: Sequence[int]) -> list[tuple[int, ...]]:
    return [(value,) for value in values]


def _crossed(*tables: Sequence[tuple[int, ...]]) -> Any:
    """Every combination of one row of each table, side by side."""
    import numpy as np  # noqa: PLC0415

    if not all(tables):
        return np.zeros((0, len(CORE)))
    arrays = [np.array(table, dtype=np.float64).reshape(len(table), -1) for table in tables]
    places = np.indices([len(table) for table in tables]).reshape(len(tables), -1)
    return np.hstack([array[place] for array, place in zip(arrays, places, strict=True)])


def _given_or(case: Case, name: str, candidates: Iterable[int]) -> list[int]:
    """The value the user gave, or else the candidates."""
    return list(candidates) if name in case.free else [getattr(case.layout, name)]


def _model_parallel(case: Case, ladder: Ladder) -> Iterator[tuple[int, int, int]]:
    gpus, layers = case.cluster.gpus, case.model.layers
    reach = max(case.cluster.fast_domain, case.cluster.gpus_per_node)
    tensors = [n for n in divisors(gpus) if n <= reach and case.model.attention.heads % n == 0]
    contexts = [
        n for n in divisors(gpus) if n == 1 or n * ladder.shortest_local_sequence <= case.training.sequence_length
    ]
    for tensor in _given_or(case, "tensor_parallel", tensors):
        for pipeline in _given_or(case, "pipeline_parallel", (n for n in divisors(gpus) if n <= layers)):
            for context in _given_or(case, "context_parallel", contexts):
                if gpus % (tensor * pipeline * context) == 0:
                    yield tensor, pipeline, context


def _data_splits(case: Case, data: int, inner: int) -> Iterator[tuple[int, int]]:
    """Replicas and shards.

    Where parameters are gathered, each size of group has its price. Megatron exchanges once a step: all ranks share
    states, or those do that one fast domain holds beside ``inner`` ranks of tensor and context parallel.
    """
    given = "data_parallel_replicate" not in case.free
    once_a_step = case.training.framework == "megatron" and not given
    sizes = [data, case.cluster.fast_domain // inner] if once_a_step else divisors(data)
    for shard in dict.fromkeys(_given_or(case, "data_parallel_shard", sizes)):
        replicate = data // shard if shard and data % shard == 0 else 0
        if replicate and (not given or case.layout.data_parallel_replicate == replicate):
            yield replicate, shard


def _experts(case: Case, pipeline: int) -> list[int]:
    if case.model.experts is None:
        return _given_or(case, "expert_parallel", [1])
    ranks = case.cluster.gpus // (pipeline * case.layout.expert_tensor_parallel)
    return _given_or(case, "expert_parallel", divisors(math.gcd(case.model.experts.count, ranks)))


def _stages(case: Case, pipeline: int) -> list[tuple[int, ...]]:
    """Pieces of a rank's stage, and layers of the last stage; 0: as even as can be.

    The longest stage divides into the pieces evenly; a shorter one's last piece is smaller. Where layers do not divide,
    the last stage, which has the head as well, may also be left as few as the others take without growing longer.
    """
    layers = case.model.layers
    longest = math.ceil(layers / pipeline)
    pieces = [n for n in VIRTUAL_STAGES if n == 1 or (pipeline > 1 and longest % n == 0)]
    shortest = max(layers - longest * (pipeline - 1), 1)
    lasts = [0, shortest] if shortest < layers // pipeline else [0]
    if "stage_layers" not in case.free:
        lasts = [case.layout.last_stage_layers]
    return list(itertools.product(_given_or(case, "virtual_stages", pieces), lasts))


def _zero_stages(case: Case, ranks: int) -> list[int]:
    """Without ranks to share with only offload asks for a stage; with them, stage 0 wastes memory for nothing."""
    if case.training.framework in ("ddp", "single"):
        return _given_or(case, "zero_stage", [0])
    return _given_or(case, "zero_stage", (0, 3) if ranks == 1 else (1, 2, 3))


def _micro_batches(case: Case, data: int, ladder: Ladder) -> list[int]:
    powers = [2**n for n in range(ladder.largest_micro_batch.bit_length()) if 2**n <= ladder.largest_micro_batch]
    batch = case.training.global_batch
    return _given_or(case, "micro_batch", (n for n in powers if not batch or batch % (n * data) == 0))
