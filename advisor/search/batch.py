"""A global batch for a job that names none, so that layouts are compared over the same work."""

from __future__ import annotations

import math

from advisor.constraints.rulebook import law
from advisor.types.case import Assumption, Case


def with_batch(case: Case) -> Case:
    """The case with a global batch, and the assumption said, when neither it nor the accumulation is given."""
    if case.training.global_batch or "gradient_accumulation" not in case.free:
        return case
    batch = default_batch(case)
    training = case.training.model_copy(update={"global_batch": batch})
    kept = tuple(known for known in case.assumptions if known.argument not in ("global_batch", "gradient_accumulation"))
    note = f"about {law().ladder.tokens_per_gpu:,} tokens a step for each GPU; give global_batch for your own"
    said = Assumption(argument="global_batch", value=batch, origin="rule:default-global-batch", note=note)
    return case.model_copy(update={"training": training, "assumptions": (*kept, said)})


def default_batch(case: Case) -> int:
    """Sequences a step: a power of two times the odd part of the GPU count, which most ways of dividing divide."""
    gpus = case.cluster.gpus
    odd = gpus // (gpus & -gpus)
    wanted = law().ladder.tokens_per_gpu * gpus / case.training.sequence_length
    return int(odd * 2 ** max(round(math.log2(max(wanted / odd, 1))), 0))
