"""Public reports of jobs that failed or fitted: our verdict and what fills the memory, against the reports' labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import Any

from tests.validation.facts import COUNTABLE, fact, notes, of_rows, read_list
from tests.validation.measured_figures import share
from tests.validation.reports_classes import BESIDE, DEPENDS, GROUPS, NOTABLE, VERDICTS, dominating
from tests.validation.reports_judged import Judged, Report, decoded, judge
from tests.validation.reports_rows import text

HIGH, LINE = "high", 120


def run(path: Path, rows: str | None = None) -> dict[str, Any]:
    """Judges every report of the file, prints those in reach and returns the figures of those of high confidence.

    Raises:
        BadCallError: ``rows`` is not countable or cluster, or the file holds no rows.
    """
    every = judged(path, rows)
    _print(every)
    return figures(every)


def figures(every: Sequence[Judged]) -> dict[str, Any]:
    """How often the product agrees with the reports of high confidence that are in reach."""
    high = [found for found in every if found.report["confidence"] == HIGH]
    reached = [found for found in high if not found.out_of_reach]
    terms = [found.dominating_right for found in reached if found.dominating_right is not None]
    sizes = [decoded(found.report) for found in high if found.report.get("failed_request_decodes_to")]
    return {
        "n": len(high),
        "in_reach": len(reached),
        "decided": share(sum(found.ours not in (DEPENDS, "needs_info") for found in reached), len(reached)),
        "verdict_class_accuracy": share(sum(found.verdict_right for found in reached), len(reached)),
        "dominating_n": len(terms),
        "dominating_accuracy": share(sum(terms), len(terms)),
        "decoded_n": len(sizes),
        "decoded_rate": share(sum(sizes), len(sizes)),
    }


@cache
def judged(path: Path, rows: str | None = None) -> tuple[Judged, ...]:
    """The product's word on each report of a file.

    Raises:
        BadCallError: a report lacks one of the parts that every report has.
    """
    every = read_list(path)
    for report in every:
        for part in ("source", "confidence", "config", "expected"):
            fact(report, part, str(report.get("id", "a report")))
    return tuple(judge(report) for report in of_rows(every, rows, is_countable))


def is_countable(report: Report) -> bool:
    """No model, context or expert parallelism and nothing offloaded."""
    config = report["config"]
    divided = any(text(config, name) not in ("", "1") for name in ("tp", "pp", "cp", "ep", "etp", "vpp"))
    offloads = text(config, "offload") not in ("", "none", "unclear") or "offload" in text(config, "recompute")
    return not divided and not offloads and "megatron" not in text(config, "framework")


# --- page and print -------------------------------------------------------------------------------------------------

RULES = (
    "What a report leaves open (sequence length, micro-batch, recompute, sharding) takes each of two plausible values. "
    "Where all agree on go or no go, that is our verdict. Else it `depends`: right where the class says so or one "
    "of the spanned verdicts is the class's. A report without model size or GPUs gets `needs_info`, which is right "
    "except for an illegal layout. An undecided job's dominating term is judged where the job ends as it did."
)

HEAD = "| report | confidence | it says | we say | verdict agrees | dominating term agrees | why not |"


def details(path: Path) -> str:
    """What counts as the same word, and every report in reach with what was said of it, as parts of the page."""
    known = notes("reports")
    rows = [
        f"| {' | '.join(_cells(found))} | {known.get(found.report['source'], '') if missed(found) else ''} |"
        for found in judged(path)
        if not found.out_of_reach
    ]
    beyond = Counter(found.out_of_reach.split("; ")[0] for found in judged(path) if found.out_of_reach)
    reasons = [f"| {reason} | {count} |" for reason, count in sorted(beyond.items())]
    countable = "; ".join(f"`{name}` {value}" for name, value in figures(judged(path, COUNTABLE)).items())
    return "\n\n".join(
        (
            fill(f"Reports without model parallelism and offload: {countable}.", LINE),
            fill(RULES, LINE),
            "\n".join(("| a report's class | our words that say the same |", "|---|---|", *_meanings())),
            "\n".join((HEAD, "|---|---|---|---|---|---|---|", *rows)),
            "\n".join(("| out of an estimate's reach | reports |", "|---|---:|", *reasons)),
        )
    )


def _meanings() -> Iterator[str]:
    for label, words in VERDICTS.items():
        yield f"| {label} | {', '.join(sorted(words))} |"
    for label, group in GROUPS.items():
        beside = BESIDE.get(label, "")
        yield f"| {label} | {group} is one of the two largest groups, {NOTABLE:.0%} of the peak or more{beside} |"
    yield "| host_states | a host verdict that is no go |"


def missed(found: Judged) -> bool:
    """Whether a report in reach has another verdict or dominating term than ours."""
    return not found.out_of_reach and (not found.verdict_right or found.dominating_right is False)


def _print(every: Sequence[Judged]) -> None:
    for found in every:
        if not found.out_of_reach:
            print(" | ".join(_cells(found)))
    for reason, count in sorted(Counter(found.out_of_reach[:80] for found in every if found.out_of_reach).items()):
        print(f"out of reach {count:>3}: {reason}")


def _cells(found: Judged) -> tuple[str, ...]:
    """Report, confidence, labels, our words, and whether each of the two agrees."""
    agreed = {True: "yes", False: "no", None: "-"}
    expected = found.report["expected"]
    first = ", ".join(dominating(found.answer)) if found.answer else found.why[:60]
    return (
        str(found.report["source"]),
        str(found.report["confidence"]),
        f"{found.label} / {expected['dominating_class']}",
        f"{found.ours} / {first}",
        agreed[found.verdict_right],
        agreed[found.dominating_right],
    )
