"""The largest job, or the smallest machine, that still fits; the memory that stops it; the next limit."""

from __future__ import annotations

from advisor.errors import AdvisorError
from advisor.limits.job import largest_job
from advisor.limits.machine import fewest_gpus, smallest_device
from advisor.types.sweeps import LimitAnswer, LimitArguments


def find_limit(request: LimitArguments, *, allow_paths: bool) -> LimitAnswer:
    """The limit of one quantity, everything else as the case says.

    Micro-batch and sequence length keep the case's layout as ``estimate_memory`` reads it; GPUs and device search for
    a layout, keeping what the case gives.

    Raises:
        AdvisorError: the case cannot be understood, or ``not_modelled`` for what has no memory model yet.
    """
    if request.of == "gpus":
        return fewest_gpus(request.case, allow_paths=allow_paths)
    if request.of == "device":
        return smallest_device(request.case, allow_paths=allow_paths)
    if request.of == "images_per_sample":
        detail = "images_per_sample is not modelled yet; accepted: micro_batch, sequence_length, gpus, device"
        raise AdvisorError("not_modelled", detail, pointer="/of", suggestions=["micro_batch", "sequence_length"])
    return largest_job(request.case, request.of, allow_paths=allow_paths)
