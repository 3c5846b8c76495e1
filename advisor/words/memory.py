"""The text of ``estimate_memory``: verdict, peak, terms that add up, stages, what was assumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor import units
from advisor.units import format_bytes
from advisor.words.phrases import VERDICTS, assumption_lines, joined, next_lines, warning_lines
from advisor.words.tables import gib, memory_rows, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from advisor.types import Host, HostInstant, MemoryAnswer, Parameters, Time

MOST_TERMS: Final = 8
MOST_STAGES: Final = 4
NOTHING: Final = "none"


def memory_text(answer: MemoryAnswer, full: bool = False) -> str:
    """The answer of ``estimate_memory`` as text; ``full`` adds every term with its formula and every assumption."""
    blocks = [
        [verdict_line(answer), *memory_lines(answer), *host_lines(answer.host, full=full)],
        term_lines(answer, full),
        _stage_lines(answer),
        _job_lines(answer),
        assumption_lines(answer.assumptions, full),
        warning_lines(answer.warnings, full),
        question_lines(answer.questions),
        next_lines(answer.next_calls),
    ]
    return joined(blocks)


def verdict_line(answer: MemoryAnswer) -> str:
    """The GPU's verdict, and the node's where that is worse."""
    if answer.decisive_verdict == answer.verdict:
        return f"{VERDICTS[answer.verdict]}."
    gpu, host = answer.verdict.replace("_", " ").upper(), answer.host
    if host.verdict == "needs_info":
        return f"{gpu} on the GPU, NEEDS INFO of the host: {_unknown(host)}."
    return f"{gpu} on the GPU, but the host {_GRADES[host.verdict]}: {_against_node(host)}."


_GRADES: Final = {"fits": "only FITS", "tight": "is TIGHT", "does_not_fit": "DOES NOT FIT"}


def _unknown(host: Host) -> str:
    """What is not known of the node, and has to be given."""
    needs = {"cpu_memory_gib": host.cpu_bytes_per_node, "nvme_gib": host.nvme_bytes_per_node}
    held = {"cpu_memory_gib": host.cpu_bytes_of_node, "nvme_gib": host.nvme_bytes_of_node}
    missing = [name for name, needed in needs.items() if needed and held[name] is None]
    return f"whether the node has it is unknown: give {' and '.join(missing)}"


def _against_node(host: Host) -> str:
    """What decides the node's verdict against what there is: its CPU memory at one instant, or its NVMe."""
    needed, held = host.most_bytes_per_node, host.cpu_bytes_of_node
    nvme, nvme_held = host.nvme_bytes_per_node, host.nvme_bytes_of_node
    if nvme_held is not None and (held is None or nvme * held > needed * nvme_held):
        return f"{format_bytes(nvme)} of {format_bytes(nvme_held)} NVMe"
    return f"{format_bytes(needed)} of {format_bytes(held or 0)}, the {host.binding} decides"


def memory_lines(answer: MemoryAnswer) -> list[str]:
    """The peak against what is usable, and what decides it."""
    margin = answer.margin_bytes
    left = f"{format_bytes(margin)} left" if margin >= 0 else f"{format_bytes(-margin)} too much"
    peak = f"Peak {gib(answer.peak_bytes, answer.peak_bytes)} GiB allocated"
    band = f"(band {format_bytes(answer.peak_bytes_low)} to {format_bytes(answer.peak_bytes_high)})"
    reserved = f"{format_bytes(answer.reserved_bytes)} reserved"
    usable = f"of {format_bytes(answer.usable_bytes)} usable per GPU"
    binding = answer.binding
    return [
        f"{peak} {band}, {reserved}, {usable}: {left}. Evidence: {answer.evidence}.",
        f"Binding: stage {binding.stage}, {binding.phase.replace('_', ' ')}, largest term {binding.term}.",
    ]


def host_lines(host: Host, *, full: bool = False, unjudged: bool = True) -> list[str]:
    """What the node itself must hold: what is offloaded in a step, and what loading and saving take.

    Args:
        host: the answer's part.
        full: whether to show what fills each instant, with its formula.
        unjudged: whether to tell of a node that holds nothing in a step, and whose memory nobody gave.
    """
    offloaded = _parts({"CPU": host.cpu_bytes_per_node, "NVMe": host.nvme_bytes_per_node})
    leans = offloaded != NOTHING
    needs = [*([offloaded] if leans else []), *(_instant(each) for each in host.instants if each.instant != "step")]
    judged = leans or host.cpu_bytes_of_node is not None
    grade = f"; {_host_verdict(host)}" if judged else ""
    line = [f"Host per node: {', '.join(needs)}{grade}."] if needs and (judged or unjudged) else []
    return [*line, *_step_line(host), *(_formulas(host) if full else [])]


def _step_line(host: Host) -> list[str]:
    """What fills the node's memory in a step, where that is more than one thing."""
    parts = [part for each in host.instants if each.instant == "step" for part in each.parts]
    words = [f"{part.slot.removeprefix('host.').replace('_', ' ')} {format_bytes(part.bytes)}" for part in parts]
    return [f"There in a step: {', '.join(words)}."] if len(parts) > 1 else []


def _formulas(host: Host) -> list[str]:
    """Each part once, at the first instant that holds it."""
    parts = {part.slot: part for each in host.instants for part in each.parts}
    return [f"{part.slot} = {part.formula} = {part.substituted} [{part.source}]" for part in parts.values()]


def _instant(each: HostInstant) -> str:
    """What an instant beside the step takes; the way that it is done where that is only assumed."""
    return f"{format_bytes(each.bytes_per_node)} to {each.instant}{'' if each.counts else f' (assumed {each.way})'}"


def _host_verdict(host: Host) -> str:
    """The grade and the instant that decides it."""
    if host.verdict == "needs_info":
        return _unknown(host)
    return f"{host.verdict.replace('_', ' ')}, the {host.binding} decides"


def term_lines(answer: MemoryAnswer, full: bool, *, most: int = MOST_TERMS) -> list[str]:
    """The terms alive at the peak as a table that adds up; ``full`` shows all of them with their formulas."""
    alive = [term for term in answer.terms if answer.binding.phase in term.phases]
    parts = [(term.name, term.bytes) for term in alive]
    rows = memory_rows(parts, answer.peak_bytes, most=len(parts) if full else most)
    formulas = [f"{term.name} = {term.formula} = {term.substituted} [{term.source}]" for term in answer.terms]
    return ["Terms at the peak, GiB:", *table(rows), *(formulas if full else [])]


def question_lines(questions: Sequence[str]) -> list[str]:
    """What to give for a surer answer."""
    return [f"Surer with: {', '.join(questions)}."] if questions else []


def _stage_lines(answer: MemoryAnswer) -> list[str]:
    if len(answer.stages) <= 1:
        return []
    most = sorted(answer.stages, key=lambda stage: -stage.peak_bytes)[:MOST_STAGES]
    rows = [
        (f"stage {each.stage}", f"{each.layers} layers", f"{each.in_flight:g} in flight", format_bytes(each.peak_bytes))
        for each in sorted(most, key=lambda stage: stage.stage)
    ]
    left = len(answer.stages) - len(most)
    return ["Pipeline stages:", *table(rows), *([f"  … and {left} lighter"] if left else [])]


def _job_lines(answer: MemoryAnswer) -> list[str]:
    count, saved = answer.parameters, answer.activations
    parameters = (
        f"{units.format_count(count.total)}{_trainable(count)}, {units.format_count(count.per_rank)} on the rank"
    )
    activations = _parts({"saved": saved.saved_bytes, "working set": saved.working_set_bytes, "loss": saved.loss_bytes})
    return [
        f"Parameters: {parameters}. Activations: {activations}.",
        *time_lines(answer),
    ]


def _trainable(count: Parameters) -> str:
    """What is trained, where it is not the whole model; the total of a model leaves its extra predictors out."""
    if count.trainable > count.total:
        return f" and {units.format_count(count.trainable - count.total)} of multi-token prediction, all trainable"
    return "" if count.trainable == count.total else f", {units.format_count(count.trainable)} trainable"


def _parts(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{format_bytes(size)} {name}" for name, size in sizes.items() if size) or NOTHING


def time_lines(answer: MemoryAnswer) -> list[str]:
    """The speed of the layout, and what the whole training takes where it is known how long it is."""
    time = answer.time
    if time.step_time_s is None or time.tokens_per_s is None:
        return [time.note] if time.note else []
    mfu = f", MFU {time.mfu:.0%}" if time.mfu is not None else ""
    step = units.format_seconds(time.step_time_s)
    return [f"Time: {step} a step, {time.tokens_per_s:,.0f} tokens/s{mfu}.", *_whole_training(time)]


def _whole_training(time: Time) -> list[str]:
    if time.days is None:
        return []
    cost = f", cost {time.cost:,.2f}" if time.cost is not None else ""
    return [f"All tokens: {units.format_seconds(time.days * units.DAY)}, {time.gpu_hours:,.1f} GPU hours{cost}."]
