"""How a published measurement cuts its batch → sequences a pass, passes a step."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tests.validation.facts import NotGivenError
from tests.validation.measured_states import text

Row = Mapping[str, Any]


def batch(row: Row) -> dict[str, Any]:
    """Sequence length, micro-batch and accumulation.

    Raises:
        NotGivenError: one of them decides memory and is not stated.
    """
    micro, steps = row.get("micro_batch") or _piped_micro_batch(row), row.get("grad_accum")
    if not row.get("seq_len") or not micro:
        raise NotGivenError("sequence length or micro-batch")
    skips_sync = "kempner" in text(row, "framework")  # its loop sets no_sync until the last micro-batch
    if skips_sync and steps is None:
        raise NotGivenError("gradient accumulation, which decides whether whole gradients accumulate")
    found = {"sequence_length": int(row["seq_len"]), "micro_batch": int(micro)}
    if not row.get("micro_batch"):
        found["gradient_accumulation"] = int(row["pp"])
    elif steps or not (row.get("pp") or 1) > 1:
        found["gradient_accumulation"] = int(steps or 1)
    return found | ({"gradient_sync": "last"} if skips_sync and (steps or 1) > 1 else {})


def _piped_micro_batch(row: Row) -> int | None:
    """Torchtitan cuts a rank's local batch into as many micro-batches as stages, unless told otherwise.

    ``pipelining_utils.py`` of December 2024: ``pipeline_parallel_microbatches`` is the pipeline's degree by default.
    """
    local = re.search(r"local batch size (\d+)", text(row, "notes"))
    if "torchtitan" not in text(row, "framework") or local is None or (row.get("pp") or 1) == 1:
        return None
    whole, left = divmod(int(local[1]), int(row["pp"]))
    return whole if not left else None
