"""Figures over predicted measurements: errors, verdicts, and what is fitted, each left out by source."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.validation.comparison import Comparison, error_at, median_error
from tests.validation.measured_predictions import Predicted, measured

GOOD_QUALITY = ("A+", "A", "A-")

#: The band leaves this share of the other sources' rows outside on each side.
TAIL = 0.05
FEWEST_FOR_A_BAND = 8


def is_good(row: Mapping[str, Any]) -> bool:
    """Whether a row's quality is high enough for figures on errors."""
    return row["quality"] in GOOD_QUALITY


def figures(rows: Sequence[Mapping[str, Any]], answered: Sequence[Predicted]) -> dict[str, Any]:
    """Errors over all predicted rows of good quality; verdicts over all predicted rows that say how the run ended."""
    good = [p for p in answered if p.comparison and is_good(p.row)]
    asked = [row for row in rows if is_good(row) and measured(row)[1] is not None]
    known = [p.comparison for p in good if p.known and p.comparison]
    groups = by_group(good)
    return {
        "n": len(rows),
        "predicted": share(len(answered), len(rows)),
        "a_grade_predicted": share(len(good), len(asked)),
        "known_n": len(known),
        "known_median_error": _of(known, median_error),
        "known_p90_error": _of(known, lambda found: error_at(found, 0.9)),
        "macro_median_error": _mean(median_error(found) for found in groups.values()),
        "macro_p90_error": _mean(error_at(found, 0.9) for found in groups.values()),
        "loso_macro_median_error": _mean(_left_out_errors(good)),
        **_verdict_figures(answered),
        "band_coverage": band_coverage(good),
        "host_within_20_percent": None,  # no row states host memory
    }


def by_group(good: Iterable[Predicted]) -> dict[str, list[Comparison]]:
    """The comparisons of each source."""
    groups: dict[str, list[Comparison]] = defaultdict(list)
    for predicted in good:
        if predicted.comparison:
            groups[predicted.comparison.group].append(predicted.comparison)
    return dict(groups)


def _verdict_figures(answered: Sequence[Predicted]) -> dict[str, float | None]:
    """Shares of wrong verdicts, over the rows that name their GPU."""
    on_a_known_gpu = [p for p in answered if p.row["gpu"]]
    failed = [p.verdict for p in on_a_known_gpu if p.row["outcome"] == "OOM"]
    ran = [p.verdict for p in on_a_known_gpu if p.row["outcome"] == "fits"]
    return {
        "false_fit_rate": share(sum(verdict in ("fits", "comfortable") for verdict in failed), len(failed)),
        "false_misfit_rate": share(ran.count("does_not_fit"), len(ran)),
        "tight_rate": share(ran.count("tight"), len(ran)),
    }


# --- reserved over allocated ----------------------------------------------------------------------------------------


def _left_out_errors(good: Sequence[Predicted]) -> list[float]:
    """Each source's median error with the one fitted share, the allocator's, taken from the other sources only."""
    errors = []
    for group in by_group(good):
        allocator = reserved_share(p.row for p in good if p.row["source_group"] != group)
        errors.append(median_error([_rescaled(p, allocator) for p in good if p.row["source_group"] == group]))
    return errors


def reserved_share(rows: Iterable[Mapping[str, Any]]) -> float | None:
    """By how much reserved memory exceeds allocated memory, the median over rows that state both."""
    ratios = reserved_ratios(rows)
    return statistics.median(ratios) - 1 if ratios else None


def reserved_ratios(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """Reserved over allocated memory, ascending, of the rows that state both."""
    stated = [row.get("measured_all") or {} for row in rows]
    return sorted(
        all_of["reserved_gib"] / all_of["allocated_gib"]
        for all_of in stated
        if all_of.get("reserved_gib") and all_of.get("allocated_gib")
    )


def _rescaled(predicted: Predicted, allocator: float | None) -> Comparison:
    """The row with another share for the allocator than the product's own."""
    found, fixed = predicted.comparison, predicted.fixed_gib
    assert found is not None
    if allocator is None or predicted.meter == "allocated":
        return found
    allocated = (found.ours - fixed) / (1 + predicted.breakdown.case.training.fragmentation)
    return Comparison(found.name, found.group, found.fact, allocated * (1 + allocator) + fixed)


# --- the band -------------------------------------------------------------------------------------------------------


def band_coverage(good: Sequence[Predicted]) -> float | None:
    """The share of rows inside a band whose ends come from other sources' residuals of the same evidence class."""
    inside = []
    for group in by_group(good):
        others = [p for p in good if p.row["source_group"] != group]
        for predicted in (p for p in good if p.row["source_group"] == group):
            ends = band(others, predicted.evidence)
            if ends and predicted.comparison:
                inside.append(ends[0] <= predicted.comparison.fact / predicted.comparison.ours <= ends[1])
    return share(sum(inside), len(inside))


def band(rows: Sequence[Predicted], evidence: str) -> tuple[float, float] | None:
    """Low and high end of measured over predicted for a class of evidence; sources weigh the same."""
    groups = by_group(p for p in rows if p.evidence == evidence)
    weighted = sorted((row.fact / row.ours, 1 / len(found)) for found in groups.values() for row in found)
    if len(weighted) < FEWEST_FOR_A_BAND:
        return None
    return _quantile(weighted, TAIL), _quantile(weighted, 1 - TAIL)


def _quantile(weighted: Sequence[tuple[float, float]], share_below: float) -> float:
    wanted, passed = share_below * sum(weight for _, weight in weighted), 0.0
    for value, weight in weighted:
        passed += weight
        if passed >= wanted:
            return value
    return weighted[-1][0]


# --- rounding -------------------------------------------------------------------------------------------------------


def share(part: float, whole: float) -> float | None:
    """A share with four digits; None of nothing."""
    return round(part / whole, 4) if whole else None


def _mean(values: Iterable[float]) -> float | None:
    found = list(values)
    return round(statistics.fmean(found), 4) if found else None


def _of(found: Sequence[Comparison], figure: Callable[[Sequence[Comparison]], float]) -> float | None:
    return round(figure(found), 4) if found else None
