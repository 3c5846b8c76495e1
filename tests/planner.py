"""Jobs of all sizes with the experts' checks, one by one; docs/planner.md shows them."""

from functools import cache
from typing import Final

from advisor.units import format_bytes
from advisor.words.phrases import layout_words
from tests.experts import CHECKS, H100, JOBS, Check, Finding, Job, unless_worse

MANY_CONTEXT_RANKS = 100


def context_parallel_in_the_hundreds(job: Job) -> Finding | None:
    """Context parallel in the hundreds only where fewer ranks are worse"""
    ranks = job.layout.context_parallel
    if ranks == 1:
        return None
    return unless_worse(job, ranks < MANY_CONTEXT_RANKS, f"{ranks} ranks", context_parallel=ranks // 2)


PLANNER_CHECKS: Final[tuple[Check, ...]] = (*CHECKS, context_parallel_in_the_hundreds)
ONE_24 = "1x1 RTX-4090"


def _job(title: str, model: str, hardware: str, length: str, **more: object) -> Job:
    return Job(title, {"model": model, "hardware": hardware, "sequence_length": length, **more})


#: One job for each device and sequence length; those that docs/recommendations.md has are the same objects.
PLANNER_JOBS: Final = (
    _job("Llama-3-8B, 8k, 1x8 H100", "llama-3-8b", f"1x8 {H100}", "8k"),
    JOBS[2],
    _job("Llama-3-70B, 8k, 2x8 H100", "llama-3-70b", f"2x8 {H100}", "8k"),
    _job("Llama-3-70B, 8k, 8x8 H100", "llama-3-70b", f"8x8 {H100}", "8k"),
    _job("Llama-3-70B, 128k, 8x8 H100", "llama-3-70b", f"8x8 {H100}", "128k"),
    *JOBS[3:],
    _job(
        "Llama-3-8B, full, one 24 GB card, 128 GiB host",
        "llama-3-8b",
        ONE_24,
        "4k",
        cpu_memory_gib="128",
        nvme_gib="1000",
    ),
    _job("Llama-3-8B, full, one 24 GB card, 256 GiB host", "llama-3-8b", ONE_24, "4k", cpu_memory_gib="256"),
    _job("Llama-3-8B, full, one 48 GB card", "llama-3-8b", "1x1 L40S-48GB", "4k", cpu_memory_gib="256"),
    _job("Llama-3-8B, full, one 80 GB card", "llama-3-8b", f"1x1 {H100}", "4k", cpu_memory_gib="256"),
    *(
        _job(f"Llama-2-7B, {method}, one 24 GB card, {length} tokens", "llama-2-7b", ONE_24, length, method=method)
        for method in ("lora", "qlora")
        for length in ("512", "2k", "8k")
    ),
)


# --- the page -------------------------------------------------------------------------------------------------------


def page_of_planner() -> str:
    """All jobs as a part of docs/planner.md: a table, then the checklist of each."""
    head = ["| job | verdict | framework, rung | peak | checks passed |", "|---|---|---|---|---|"]
    return "\n\n".join(["\n".join([*head, *map(row_of, PLANNER_JOBS)]), *map(section_of, PLANNER_JOBS)])


@cache
def found(job: Job) -> dict[str, Finding]:
    """What the checks whose question comes up find, by the check's sentence."""
    asked = ((check.__doc__ or "", check(job)) for check in PLANNER_CHECKS)
    return {sentence: finding for sentence, finding in asked if finding}


def row_of(job: Job) -> str:
    """One job in a line."""
    answer, findings = job.answer, found(job).values()
    peak, passed = format_bytes(answer.estimate.peak_bytes), sum(finding.passes for finding in findings)
    verdict = answer.verdict.replace("_", " ")
    return f"| {job.title} | {verdict} | {answer.framework}, {answer.rung} | {peak} | {passed} of {len(findings)} |"


def section_of(job: Job) -> str:
    """One job: what is answered, and what each check finds."""
    rows = (
        f"| {sentence} | {'pass' if finding.passes else 'differs'}: {finding.because} |"
        for sentence, finding in found(job).items()
    )
    title = f"### {job.title}\n\n`{layout_words(job.layout)}`\n"
    return "\n".join([title, "| an expert requires | finding |\n|---|---|", *rows])
