"""How sure an answer is: its evidence, its band, the questions that would raise it, what a measured peak says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from advisor.estimate import Breakdown
from advisor.types.answers import Evidence
from advisor.types.case import Assumption, Case
from advisor.units import format_bytes, gib
from advisor.what_if import EXPLAINED, changes, explanation

#: How far a peak may lie below and above the expected one, by evidence: the 5th and 95th percentile of measured over
#: predicted on public measurements, sources weighing the same (the table of bands in docs/accuracy.md, all rows).
BANDS: Mapping[Evidence, tuple[float, float]] = {
    "verified": (0.07, 0.14),
    "known": (0.11, 0.29),
    "assumed": (0.25, 0.40),
}
#: A peak seen on the same job repeats this closely from run to run.
REPEATS = 0.02
#: What to ask first: what changes memory most among jobs that look the same (docs/accuracy.md).
QUESTIONS = (
    "framework", "precision", "sequence_length", "micro_batch", "recompute", "optimizer", "loss", "framework_version",
    "gradient_accumulation", "implementation", "attention", "keep_logits", "gpu_memory_gib",
)  # fmt: skip
MOST_QUESTIONS = 3


@dataclass(frozen=True)
class Band:
    """Expected peak of allocated memory, and the ends between which nine in ten such jobs lie, in bytes."""

    low: int
    expected: int
    high: int

    @property
    def excess(self) -> float:
        """How far the high end lies above the expected peak, as a share of it."""
        return self.high / self.expected - 1 if self.expected else 0.0


def evidence(case: Case) -> Evidence:
    """The weakest class that the answer rests on: a model whose shapes are a best effort makes any recipe assumed."""
    return case.training.recipe.evidence if case.model.exact else "assumed"


def band(breakdown: Breakdown) -> Band:
    """The estimate with the band of its evidence, or a measured peak of the same job, which leaves little open."""
    case = breakdown.case
    if case.training.measured_peak_gib:
        measured = gib(case.training.measured_peak_gib)
        return Band(round(measured * (1 - REPEATS)), measured, round(measured * (1 + REPEATS)))
    low, high = BANDS[evidence(case)]
    peak = breakdown.peak_bytes
    return Band(round(peak * (1 - low)), peak, round(peak * (1 + high)))


def reserved_bytes(breakdown: Breakdown) -> int:
    """What the caching allocator holds at the expected, or measured, peak."""
    pools = breakdown.pooled_bytes - breakdown.peak_bytes
    return round((band(breakdown).expected + pools) * (1 + breakdown.case.training.fragmentation))


def least_bytes(breakdown: Breakdown) -> int:
    """What the allocator cannot do without: under pressure it gives back the free blocks of other streams' pools."""
    return round(band(breakdown).expected * (1 + breakdown.case.training.fragmentation))


def questions(case: Case) -> tuple[str, ...]:
    """Arguments nobody gave that would make the answer surer, the most telling first."""
    if case.training.measured_peak_gib:
        return ()
    open_choices = {a.argument for a in case.assumptions if a.origin != "given"}
    return tuple(name for name in QUESTIONS if name in open_choices)[:MOST_QUESTIONS]


def measured_warnings(breakdown: Breakdown) -> tuple[str, ...]:
    """What the user's own peak says about the estimate, and the one assumption that explains a difference."""
    case = breakdown.case
    if not case.training.measured_peak_gib:
        return ()
    measured, ours = gib(case.training.measured_peak_gib), breakdown.peak_bytes
    apart = f"{measured / ours - 1:+.0%}"
    opening = f"measured peak {format_bytes(measured)} against {format_bytes(ours)} computed ({apart})"
    found = explanation(case, measured, ours)
    if found:
        computed = format_bytes(found.breakdown.peak_bytes)
        reason = f"{found.argument}={found.value} explains it: {computed}; give it to get its terms"
    elif abs(measured / ours - 1) <= EXPLAINED:
        reason = "they agree"
    else:
        reason = "no single assumption explains it; terms below are the computed ones"
    return (f"{opening}: {reason}. The verdict rests on the measured peak",)


def with_flips(breakdown: Breakdown, fits: bool) -> tuple[Assumption, ...]:
    """The assumptions; those whose other plausible values were tried say whether one would change whether it fits."""
    flips: dict[str, bool] = {}
    for change in changes(breakdown.case):
        other = reserved_bytes(change.breakdown) <= change.breakdown.usable_bytes
        flips[change.argument] = flips.get(change.argument, False) or other != fits
    return tuple(
        a.model_copy(update={"flips_verdict": flips[a.argument]}) if a.argument in flips else a
        for a in breakdown.case.assumptions
    )
