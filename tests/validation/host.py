"""Host memory of a node, against what public pages state of it; or the fact that is missing for a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from advisor import phases
from advisor.estimate import estimate
from advisor.node_memory import host
from advisor.resolve import resolve
from advisor.types import CaseArguments
from advisor.units import GIB
from tests.validation.comparison import Comparison, compare, print_worst, within
from tests.validation.facts import fact, read_list

Row = Mapping[str, Any]

#: How close a host figure must be, as a share of what is stated.
CLOSE = 0.20


def run(path: Path) -> dict[str, Any]:
    """Compares the rows of the file, prints the worst and returns how many are close or say what is missing."""
    rows, compared = read_list(path), comparisons(path)
    print_worst(compared, "stated")
    for row in rows:
        if "missing" in row:
            print(f"not compared: {row['id']}: {row['missing']}")
    return {
        "n": len(rows),
        "compared": len(compared),
        "host_within_20_percent": within(compared, CLOSE),
        "missing_fact_named": sum("missing" in row for row in rows),
    }


@cache
def comparisons(path: Path) -> tuple[Comparison, ...]:
    """One row a statement that counts what our figure counts; what fails a machine needs no less than it has."""
    return tuple(_comparison(row) for row in read_list(path) if "missing" not in row)


def _comparison(row: Row) -> Comparison:
    """Our figure; what is stated where that is the size of a machine, and we say that it fails, or is enough, too."""
    stated = float(fact(row, "gib", row["id"]))
    least = stated if row.get("at_most") else 0.0
    most = stated if row.get("at_least") else float("inf")
    return compare(row["id"], row["kind"], stated, lambda: max(min(our_gib(row), most), least))


def our_gib(row: Row) -> float:
    """Our host memory of a node in GiB at the row's instant: what the row counts, for the parameters that it states."""
    case = resolve(CaseArguments(**fact(row, "case", row["id"])), allow_paths=False)
    scale = row.get("parameters", case.parameters.total) / case.parameters.total
    wanted, breakdown = row.get("instant", "step"), estimate(case)
    (found,) = [each for each in host(breakdown).instants if each.instant == wanted]
    uncounted = breakdown.binding.held([row.get("without", "")], phases.HOST) * case.cluster.gpus_per_node
    return float((found.bytes_per_node - uncounted) / GIB * scale)


def details(path: Path) -> str:
    """Every statement, ours beside it, and the error or the missing fact."""
    head = "| stated by | kind | when | it counts | GiB | ours | error, or the missing fact |"
    return "\n".join((head, "|---|---|---|---|---:|---:|---|", *(_line(row) for row in read_list(path))))


def _line(row: Row) -> str:
    stated = f"{row['gib']:,.0f}" if "gib" in row else "-"
    ours = f"{our_gib(row):,.0f}" if "case" in row else "-"
    said = (row["source"], row["kind"], row.get("instant", "step"), row["counts"])
    return f"| {' | '.join((*said, stated, ours, _outcome(row)))} |"


def _outcome(row: Row) -> str:
    if "missing" in row:
        return str(row["missing"])
    if row.get("at_most"):
        return "agrees: the machine has it" if our_gib(row) <= row["gib"] else "more than the machine has"
    if row.get("at_least"):
        return "agrees: more than the machine has" if our_gib(row) > row["gib"] else "fewer than the machine has"
    return f"{our_gib(row) / row['gib'] - 1:+.1%}"
