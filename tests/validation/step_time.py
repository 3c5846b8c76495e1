"""Seconds of an optimizer step, against published training runs; each also predicted by a fit that never saw it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

from advisor.errors import AdvisorError
from advisor.types.case import Case
from tests.validation.comparison import Comparison, bias, error_at, median_error, print_worst
from tests.validation.facts import BadCallError, NotGivenError, read_facts
from tests.validation.step_time_fit import Run, catalog_logs, left_out, seconds, sensitivities
from tests.validation.step_time_rows import case_of, measured_seconds

DENSE, MOE = "dense", "moe"
#: Two runs of a job whose speeds are closer than this may be ordered either way.
APART = 0.03


@dataclass(frozen=True)
class Published:
    """One published run.

    Attributes:
        row: what was published.
        case: what we take it for; None where we cannot.
        measured: seconds of its step; 0 where it is not known.
        refusal: why it cannot be predicted.
    """

    row: Mapping[str, Any]
    case: Case | None
    measured: float
    refusal: str = ""

    @property
    def kind(self) -> str:
        """Dense or mixture of experts."""
        return MOE if self.row["hyperparameters"].get("num_experts") else DENSE


def run(path: Path) -> dict[str, Any]:
    """Compares every run of the file, prints errors by source and returns the figures."""
    rows = comparisons(path)
    print_worst([row for row in rows if not row.refusal], "measured")
    print(details(path))
    published = runs(path)
    predicted = [one for one in published if one.case]
    return {"n": len(published), "predicted": len(predicted) / len(published), **_figures(path, predicted)}


def _figures(path: Path, predicted: Sequence[Published]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for prefix, errors in (("", in_sample(path)), ("lomo_", by_model(path)), ("loso_", by_source(path))):
        for kind in (DENSE, MOE):
            rows = [error for one, error in zip(predicted, errors, strict=True) if one.kind == kind]
            if rows:
                found |= {
                    f"{prefix}{kind}_median_error": median_error(rows),
                    f"{prefix}{kind}_p90_error": error_at(rows, 0.9),
                }
    return found | pair_concordance(predicted, in_sample(path))


@cache
def runs(path: Path) -> tuple[Published, ...]:
    """The measured runs of the file that name their layer sizes.

    Raises:
        BadCallError: the file holds no such list.
    """
    rows = read_facts(path).get("configs")
    if not isinstance(rows, list) or not rows:
        raise BadCallError(f"{path} has no list 'configs'; step_time needs one of published runs")
    return tuple(_published(row) for row in rows if _has_speed(row))


def _has_speed(row: Mapping[str, Any]) -> bool:
    speeds = ("step_time_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu")
    return bool(row.get("measured") and row["hyperparameters"].get("num_layers") and any(map(row.get, speeds)))


def _published(row: Mapping[str, Any]) -> Published:
    try:
        case = case_of(row)
        return Published(row, case, measured_seconds(row, case))
    except NotGivenError as error:
        return Published(row, None, 0, str(error))
    except AdvisorError as error:
        return Published(row, None, 0, f"{error.code} at {error.pointer}: {error.detail}")


@cache
def comparisons(path: Path) -> tuple[Comparison, ...]:
    """One row a run, by what the product says today."""
    predicted = iter(in_sample(path))
    return tuple(
        next(predicted) if one.case else Comparison(one.row["id"], one.kind, 1, 0, one.refusal) for one in runs(path)
    )


@cache
def in_sample(path: Path) -> tuple[Comparison, ...]:
    """Predictions by the efficiencies of the catalog."""
    logs = catalog_logs()
    return tuple(_comparison(one, seconds(one.case, logs)) for one in runs(path) if one.case)


@cache
def by_model(path: Path) -> tuple[Comparison, ...]:
    """Predictions of each model by a fit without any of its runs."""
    return _held_out(path, lambda row: row["model"])


@cache
def by_source(path: Path) -> tuple[Comparison, ...]:
    """Predictions of each source's runs by a fit without that source."""
    return _held_out(path, lambda row: row["source"])


def _held_out(path: Path, group_of: Callable[[Mapping[str, Any]], str]) -> tuple[Comparison, ...]:
    predicted = [one for one in runs(path) if one.case]
    groups = [group_of(one.row) for one in predicted]
    ours = left_out(runs_to_fit(path), _sensitivities(path), groups)
    return tuple(_comparison(one, value) for one, value in zip(predicted, ours, strict=True))


@cache
def runs_to_fit(path: Path) -> tuple[Run, ...]:
    return tuple(Run(one.case, one.measured, configuration(one.row)) for one in runs(path) if one.case)


@cache
def _sensitivities(path: Path) -> Any:
    return sensitivities(runs_to_fit(path), catalog_logs())


def configuration(row: Mapping[str, Any]) -> str:
    """What runs of one configuration share: they count once in a fit, however often they were published."""
    names = ("model", "gpu_type", "precision", "num_gpus", "seq_len", "gbs", "mbs", "tp", "pp", "vp", "cp", "ep")
    return " ".join(str(row.get(name)) for name in (*names, "recompute"))


def _comparison(one: Published, ours: float) -> Comparison:
    row = one.row
    degrees = " ".join(f"{name}{row[name]}" for name in ("tp", "pp", "cp", "ep") if row.get(name, 1) != 1)
    name = f"{row['model']} {row['num_gpus']} {row['gpu_type']} {row['precision'][:8]} s{row['seq_len']} {degrees}"
    return Comparison(f"{name.strip()} {row['id']}", one.kind, one.measured, ours)


def pair_concordance(predicted: Sequence[Published], errors: Sequence[Comparison]) -> dict[str, Any]:
    """Of two dense runs of one job more than 3 % apart: how often we name the faster one."""
    right, pairs = 0, 0
    dense = [(one, error) for one, error in zip(predicted, errors, strict=True) if one.kind == DENSE]
    for (one, first), (other, second) in combinations(dense, 2):
        apart = abs(first.fact - second.fact) > APART * min(first.fact, second.fact)
        if apart and _job(one.row) == _job(other.row) and first.ours != second.ours:
            pairs += 1
            right += (first.ours > second.ours) == (first.fact > second.fact)
    return {"pairs": pairs, "pair_concordance": right / pairs if pairs else None}


def _job(row: Mapping[str, Any]) -> tuple[Any, ...]:
    names = ("model", "gpu_type", "num_gpus", "seq_len", "gbs", "precision", "framework", "task")
    return tuple(row.get(name) for name in names)


def details(path: Path) -> str:
    """Errors by source: with the catalog's efficiencies, and with a fit that left the source out."""
    predicted = [one for one in runs(path) if one.case]
    lines = ["| source | n | bias | median | p90 | left out: median |", "|---|---:|---:|---:|---:|---:|"]
    for kind, source in sorted({(one.kind, one.row["source"]) for one in predicted}):
        chosen = [(one.kind, one.row["source"]) == (kind, source) for one in predicted]
        rows = [error for error, wanted in zip(in_sample(path), chosen, strict=True) if wanted]
        held = [error for error, wanted in zip(by_source(path), chosen, strict=True) if wanted]
        sizes = f"{median_error(rows):.1%} | {error_at(rows, 0.9):.1%} | {median_error(held):.1%}"
        lines.append(f"| {kind}, {source} | {len(rows)} | {bias(rows):+.1%} | {sizes} |")
    refused = [f"`{one.row['id']}` {one.row['model']}: {one.refusal}" for one in runs(path) if not one.case]
    return "\n".join((*lines, "", f"Not predicted: {'; '.join(refused) or 'none'}."))
