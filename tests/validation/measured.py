"""Peaks that people measured on real GPUs: allocated with allocated memory, on the rank that was reported.

A row is predicted from what it states, by framework and version; nothing here is chosen by looking at a residual.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from advisor.errors import AdvisorError
from tests.validation import measured_figures as statistics
from tests.validation import measured_ladder
from tests.validation.comparison import Comparison, bias, error_at, median_error, worst
from tests.validation.facts import CLUSTER, COUNTABLE, NotGivenError, of_rows, read_list
from tests.validation.measured_predictions import Predicted, predict
from tests.validation.measured_rows import framework_of
from tests.validation.measured_states import text

Row = Mapping[str, Any]

WORST_OF_A_GROUP = 5


class Answers(NamedTuple):
    """What became of the rows of a file.

    Attributes:
        rows: the rows that were asked.
        answered: those that the product answered.
        refused: those that it did not, each with the reason.
    """

    rows: tuple[Row, ...]
    answered: tuple[Predicted, ...]
    refused: tuple[tuple[Row, str], ...]


def run(path: Path, rows: str | None = None) -> dict[str, Any]:
    """Predicts every row of the file, prints the groups and returns the figures.

    Raises:
        BadCallError: ``rows`` is not countable or cluster, or the file holds no rows.
    """
    answers = predictions(path, rows)
    _print_groups([p for p in answers.answered if statistics.is_good(p.row)])
    _print_refused(answers.refused)
    return statistics.figures(answers.rows, answers.answered)


def comparisons(path: Path) -> tuple[Comparison, ...]:
    """One row a measured peak of good quality that the product predicts."""
    answered = predictions(path).answered
    return tuple(p.comparison for p in answered if p.comparison and statistics.is_good(p.row))


@cache
def predictions(path: Path, rows: str | None = None) -> Answers:
    """The product's answers for a file: all rows, those that PyTorch can count, or those of clusters and offload."""
    chosen = of_rows(read_list(path), rows, is_countable)
    answered, refused = [], []
    for row in chosen:
        try:
            answered.append(predict(row))
        except NotGivenError as missing:
            refused.append((row, str(missing)))
        except AdvisorError as error:
            refused.append((row, f"refused: {error.detail[:110]}"))
    return Answers(tuple(chosen), tuple(answered), tuple(refused))


def is_countable(row: Row) -> bool:
    """One GPU, DDP, FSDP or ZeRO: no model, context or expert parallelism and nothing offloaded."""
    divided = any((row.get(name) or 1) > 1 for name in ("tp", "pp", "cp", "ep", "etp", "vpp"))
    return not divided and not row.get("offload") and "megatron" not in text(row, "framework")


# --- the page -------------------------------------------------------------------------------------------------------


def details(path: Path) -> str:
    """Which rows the figures hang on, each framework's, the allocator's share and the band, as parts of the page."""
    allocator = _allocator_table(predictions(path).rows)
    tables = (_rows_table(path), _framework_table(path), allocator, _band_table(path), measured_ladder.table())
    return "\n\n".join(tables)


def _rows_table(path: Path) -> str:
    """The figures of each kind of rows side by side."""
    kinds = {name: statistics.figures(*predictions(path, rows)[:2]) for name, rows in ROWS.items()}
    lines = [
        f"| `{figure}` | " + " | ".join(_cell(figures[figure]) for figures in kinds.values()) + " |"
        for figure in next(iter(kinds.values()))
    ]
    return "\n".join((f"| figure | {' | '.join(kinds)} |", "|---|---:|---:|---:|", *lines))


ROWS = {"all rows": None, "countable": COUNTABLE, "cluster or offload": CLUSTER}


def _cell(value: float | None) -> str:
    if value is None:
        return "none"
    return str(value) if isinstance(value, int) else f"{value:.1%}"


def _framework_table(path: Path) -> str:
    """Errors of the rows that each framework ran, and how many of its rows of good quality the product predicts."""
    by_framework: dict[str, list[Row]] = defaultdict(list)
    for row in predictions(path).rows:
        by_framework[framework_of(row)].append(row)
    lines = [_framework_line(path, *each) for each in sorted(by_framework.items())]
    head = "| framework | compared | bias | median | p90 | largest | A grade, predicted |"
    return "\n".join((head, "|---|---:|---:|---:|---:|---:|---:|", *lines))


def _framework_line(path: Path, framework: str, rows: Sequence[Row]) -> str:
    answered = [p for p in predictions(path).answered if framework_of(p.row) == framework]
    found = [p.comparison for p in answered if p.comparison and statistics.is_good(p.row)]
    cells = _errors(found) if found else ["none"] * 4
    predicted = _cell(statistics.figures(rows, answered)["a_grade_predicted"])
    return f"| {framework} | {len(found)} | {' | '.join(cells)} | {predicted} |"


def _errors(found: Sequence[Comparison]) -> list[str]:
    sizes = (median_error(found), error_at(found, 0.9), error_at(found, 1))
    return [f"{bias(found):+.1%}", *(f"{size:.1%}" for size in sizes)]


def _allocator_table(rows: Sequence[Row]) -> str:
    """Reserved over allocated memory, by source."""
    lines = []
    for group in sorted({row["source_group"] for row in rows}):
        found = statistics.reserved_ratios(row for row in rows if row["source_group"] == group)
        if found:
            middle = found[len(found) // 2]
            lines.append(f"| {group} | {len(found)} | {found[0]:.2f} | {middle:.2f} | {found[-1]:.2f} |")
    return "\n".join(("| reserved / allocated | n | least | median | most |", "|---|---:|---:|---:|---:|", *lines))


def _band_table(path: Path) -> str:
    """The ends of the band, measured over predicted, and how they move when one source is left out."""
    lines = []
    for name, rows in ROWS.items():
        good = [p for p in predictions(path, rows).answered if p.comparison and statistics.is_good(p.row)]
        lines += [f"| {name} {_band_cells(good, evidence)}" for evidence in ("verified", "known", "assumed")]
    head = "| rows | evidence | sources | n | low end | high end | low, a source left out | high, a source left out |"
    return "\n".join((head, "|---|---|---:|---:|---:|---:|---:|---:|", *lines))


def _band_cells(good: Sequence[Predicted], evidence: str) -> str:
    of_class = [p for p in good if p.evidence == evidence]
    groups = statistics.by_group(of_class)
    ends = statistics.band(of_class, evidence)
    left_out = [statistics.band([p for p in of_class if p.row["source_group"] != g], evidence) for g in groups]
    moved = [found for found in left_out if found]
    cells = [f"{end:.2f}" for end in ends] if ends else ["none"] * 2
    for end in (0, 1):
        values = [found[end] for found in moved]
        cells.append(f"{min(values):.2f} to {max(values):.2f}" if values else "none")
    return f"| {evidence} | {len(groups)} | {len(of_class)} | {' | '.join(cells)} |"


# --- print ----------------------------------------------------------------------------------------------------------


def _print_groups(good: Sequence[Predicted]) -> None:
    print(f"{'source':<22}{'n':>5}{'median':>9}{'p90':>9}{'bias':>9}")
    for group, found in sorted(statistics.by_group(good).items()):
        line = f"{median_error(found):>9.1%}{error_at(found, 0.9):>9.1%}{bias(found):>+9.1%}"
        print(f"{group:<22}{len(found):>5}{line}")
        for row in worst(found)[:WORST_OF_A_GROUP]:
            print(f"    {row.error:>+8.1%}{row.ours:>9.2f}{row.fact:>9.2f} GiB  {row.name.split('/', maxsplit=1)[-1]}")


def _print_refused(refused: Sequence[tuple[Row, str]]) -> None:
    reasons = Counter((row["source_group"], why) for row, why in refused)
    for (group, why), count in sorted(reasons.items()):
        print(f"not predicted {count:>3} {group}: {why}")
