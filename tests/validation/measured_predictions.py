"""A published measurement beside the product: the same memory, on the rank that was reported."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from advisor import phases
from advisor.answer import verdict
from advisor.estimate import Breakdown, StageBreakdown, estimate
from advisor.resolve import resolve
from advisor.types import CaseArguments
from advisor.units import GB, GIB
from tests.validation.comparison import Comparison
from tests.validation.measured_rows import arguments
from tests.validation.measured_states import text

#: Words for a meter outside the process: it sees the context and the allocator's cache as well.
DRIVER_WORDS = ("nvidia", "process", "vram", "gpu memory", "monitor", "smi")


#: Share of the card above which a failed run states what was there, not what it needed.
FULL = 0.9


@dataclass(frozen=True)
class Predicted:
    """A row that the product answered.

    Attributes:
        row: the published row.
        breakdown: the product's memory.
        verdict: what the product says of the run.
        comparison: our figure beside the measured one of the same kind; None where the row states no peak.
        meter: allocated, reserved or driver.
    """

    row: Mapping[str, Any]
    breakdown: Breakdown
    verdict: str
    comparison: Comparison | None
    meter: str

    @property
    def evidence(self) -> str:
        """The class of evidence that the answer rests on."""
        return self.breakdown.case.training.recipe.evidence

    @property
    def known(self) -> bool:
        """Recipe verified or known, dense, in bf16."""
        case = self.breakdown.case
        plain = case.model.experts is None and not case.training.base_weight_bytes
        return self.evidence != "assumed" and plain and "fp" not in case.training.precision.replace("bf", "")

    @property
    def fixed_gib(self) -> float:
        """What the meter sees beside the allocator's memory."""
        return outside_gib(self.breakdown) if self.meter == "driver" else 0


def predict(row: Mapping[str, Any]) -> Predicted:
    """The product's answer for a row.

    Raises:
        NotGivenError: the row does not state what decides its memory.
        AdvisorError: the product refuses the case.
    """
    breakdown = estimate(resolve(CaseArguments(**arguments(row)), allow_paths=False))
    meter, fact = measured(row)
    comparison = None
    if fact is not None:
        comparison = Comparison(row["id"], row["source_group"], fact, our_gib(breakdown, row, meter))
    return Predicted(row, breakdown, verdict(breakdown), comparison, meter)


def measured(row: Mapping[str, Any]) -> tuple[str, float | None]:
    """Which memory was measured (allocated, reserved, driver), and its GiB; None where a run failed before its peak."""
    if row["outcome"] == "OOM" and (row.get("measured_peak_gib") or 0) > FULL * (row.get("gpu_gib") or math.inf):
        return "allocated", None
    stated = row.get("measured_all") or {}
    allocated = stated.get("allocated_gib") or stated.get("peak_allocated_gib")
    if allocated:
        return "allocated", float(allocated) * _unit(row)
    if stated.get("reserved_gib"):
        return "reserved", float(stated["reserved_gib"]) * _unit(row)
    kind, peak = text(row, "measured_kind"), row.get("measured_peak_gib")
    by_driver = any(word in kind for word in DRIVER_WORDS)
    meter = "driver" if by_driver else "reserved" if "reserved" in kind else "allocated"
    return meter, float(peak) * _unit(row) if peak else None


def _unit(row: Mapping[str, Any]) -> float:
    """GiB in the row's GB: Megatron-Bridge divides bytes by 1e9 (train_utils.report_memory)."""
    decimal = row["source_group"] == "megatron-bridge" and "unspecified" in text(row, "measured_unit")
    return GB / GIB if decimal else 1.0


def our_gib(breakdown: Breakdown, row: Mapping[str, Any], meter: str) -> float:
    """Our figure for that memory, on the rank that the row reports."""
    scope = text(row, "measured_scope") or _usual_scope(row)
    if f"/{FIRST_ITERATION}" in row["id"]:
        return after_first_iteration(breakdown.stages[0]) / GIB
    if meter == "allocated":
        return _of_rank([stage.peak_bytes for stage in breakdown.stages], scope) / GIB
    pooled = _of_rank([stage.pooled_bytes for stage in breakdown.stages], scope) / GIB
    reserved = pooled * (1 + breakdown.case.training.fragmentation)
    return reserved if meter == "reserved" else reserved + outside_gib(breakdown)


def _usual_scope(row: Mapping[str, Any]) -> str:
    """Megatron-Bridge writes its logs from the last rank (GlobalState's loggers)."""
    return "last rank" if row["source_group"] == "megatron-bridge" else ""


#: Rows of a pull request whose figure was read from the line that is printed once, after the first iteration.
FIRST_ITERATION = "llama3-70b-sft"


def after_first_iteration(stage: StageBreakdown) -> int:
    """The peak in Megatron-Bridge's logs of early 2026, which ranks of the first replica print once, after one step.

    That iteration's passes run before the first optimizer step makes the moments. Where replicas, stages and their
    parts are several, its recipes step the first part's weights before the others' (overlap_param_gather_with_
    optimizer_step), so the copies of the step are never all there.
    """
    layout, recipe = stage.place.layout, stage.place.case.training.recipe
    held = {slot: sum(line.amount for line in stage.lines if line.term.slot == slot) for slot in _OF_THE_STEP}
    moments = 2 * recipe.moment_bytes / (2 * recipe.moment_bytes + recipe.master_bytes)
    apart = min(layout.data_parallel, layout.pipeline_parallel, layout.virtual_stages) > 1
    freed = held["optimizer.weight_copy"] / layout.virtual_stages if apart else 0
    passes = max(size for phase, size in stage.by_phase.items() if phase != phases.OPTIMIZER)
    return int(max(passes - held["optimizer.dense"] * moments, stage.by_phase[phases.OPTIMIZER] - freed))


_OF_THE_STEP = ("optimizer.dense", "optimizer.weight_copy")


def outside_gib(breakdown: Breakdown) -> float:
    """What lives outside the allocator: context and communicators."""
    return (breakdown.case.cluster.driver_bytes - breakdown.usable_bytes) / GIB


def _of_rank(peaks: Sequence[int], scope: str) -> float:
    """The rank's figure that a row reports, of the stages' own."""
    if "last rank" in scope:
        return peaks[-1]
    if "first/last" in scope:
        return max(peaks[0], peaks[-1])
    if "rank 0" in scope:
        return peaks[0]
    return statistics.fmean(peaks) if "mean" in scope else max(peaks)
