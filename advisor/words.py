"""The text of an answer: it stands on its own, is short, and computes nothing but its rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from advisor import units
from advisor.words_tables import gib, memory_rows, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.types import (
        Alternative,
        Assumption,
        CatalogAnswer,
        CatalogEntry,
        Layout,
        MemoryAnswer,
        ModelAnswer,
        NextCall,
        SetupAnswer,
        Step,
    )

VERDICTS: Final = {
    "comfortable": "COMFORTABLE: even the high end of the band fits with the headroom",
    "fits": "FITS: the expected peak leaves the headroom free",
    "tight": "TIGHT: the expected peak fits, without the headroom",
    "does_not_fit": "DOES NOT FIT",
    "invalid": "INVALID layout",
    "needs_info": "NEEDS INFO: a missing argument decides",
}
MOST_TERMS: Final = 8
MOST_STAGES: Final = 4
MOST_ASSUMPTIONS: Final = 8
MOST_WARNINGS: Final = 4
MOST_STEPS: Final = 9
MOST_ENTRIES: Final = 25
LONGEST_SENTENCE: Final = 170


def memory_text(answer: MemoryAnswer, full: bool = False) -> str:
    """The answer of ``estimate_memory`` as text; ``full`` adds every term with its formula and every assumption."""
    blocks = [
        [f"{VERDICTS[answer.verdict]}.", *_memory_lines(answer)],
        _term_lines(answer, full),
        _stage_lines(answer),
        _job_lines(answer),
        _assumption_lines(answer.assumptions, full),
        _warning_lines(answer.warnings, full),
        _next_lines(answer.next_calls),
    ]
    return _joined(blocks)


def setup_text(answer: SetupAnswer, full: bool = False) -> str:
    """The answer of ``recommend_setup`` as text; ``full`` adds the memory of the winner term by term."""
    blocks = [
        [
            f"{VERDICTS[answer.verdict]}. {answer.framework}, rung {answer.rung}.",
            f"Layout: {layout_words(answer.layout)}",
            *_memory_lines(answer.estimate),
        ],
        _term_lines(answer.estimate, full, most=5),
        _step_lines(answer.steps, full),
        _alternative_lines(answer),
        [
            f"Would change the training: {each.what} -> {_gib(each.peak_bytes)}, "
            f"{'fits' if each.fits else 'does not fit'} ({each.changes})."
            for each in answer.suggestions[:3]
        ],
        _assumption_lines(answer.assumptions, full, most=5),
        _warning_lines(answer.warnings, full),
        _next_lines(answer.next_calls),
    ]
    return _joined(blocks)


def model_text(answer: ModelAnswer, full: bool = False) -> str:
    """The answer of ``describe_model`` as text; ``full`` adds the architecture."""
    counts = answer.parameters.model_dump(exclude={"per_layer", "total", "active", "biases", "mtp", "buffers"})
    rows = [(name.replace("_", " "), f"{count:,}") for name, count in counts.items() if count]
    apart = [
        f"{label}, counted apart: {count:,}"
        for label, count in (("MTP modules", answer.parameters.mtp), ("Buffers", answer.parameters.buffers))
        if count
    ]
    exactness = "exact" if answer.exact else "a best effort"
    blocks = [
        [
            (
                f"{answer.name} ({answer.model_type}): {units.format_count(answer.parameters.total)} parameters, "
                f"{units.format_count(answer.parameters.active)} active; the count is {exactness}."
            ),
            (
                f"{answer.layers} layers, hidden {answer.hidden:,}, vocabulary {answer.vocab:,}, "
                f"positions {answer.max_positions or 'unknown'}."
            ),
        ],
        table([*rows, ("total", f"{answer.parameters.total:,}")]),
        apart,
        [
            (
                f"Forward pass: {answer.flops_per_token_forward:.2e} FLOP a token, attention over 4,096 tokens. "
                f"Checkpoint in bf16: {_gib(answer.checkpoint_bytes)}."
            ),
        ],
        [f"Note: {note}" for note in answer.notes],
        [f"{name}: {value}" for name, value in answer.architecture.items()] if full else [],
    ]
    return _joined(blocks)


def catalog_text(answer: CatalogAnswer, full: bool = False) -> str:
    """The answer of ``list_catalog`` as text; ``full`` lists every entry."""
    shown = answer.entries if full else answer.entries[:MOST_ENTRIES]
    left = answer.total - len(shown)
    blocks = [
        [f"{answer.total} entries. Kinds: {', '.join(answer.kinds)}."],
        [_entry_line(entry) for entry in shown],
        [f"… and {left} more: narrow with kind and query."] if left else [],
    ]
    return _joined(blocks)


def layout_words(layout: Layout) -> str:
    """A layout as the arguments that differ from doing nothing: ``"tensor_parallel=8 zero_stage=1"``."""
    changed = layout.model_dump(mode="json", exclude_defaults=True)
    return " ".join(f"{name}={_argument(value)}" for name, value in changed.items()) or "one GPU, nothing split"


def _memory_lines(answer: MemoryAnswer) -> list[str]:
    margin = answer.margin_bytes
    left = f"{_gib(margin)} left" if margin >= 0 else f"{_gib(-margin)} too much"
    binding = answer.binding
    return [
        (
            f"Peak {gib(answer.peak_bytes, answer.peak_bytes)} GiB allocated (band {_gib(answer.peak_bytes_low)} to "
            f"{_gib(answer.peak_bytes_high)}), {_gib(answer.reserved_bytes)} reserved, of {_gib(answer.usable_bytes)} "
            f"usable per GPU: {left}. Evidence: {answer.evidence}."
        ),
        f"Binding: stage {binding.stage}, {binding.phase.replace('_', ' ')}, largest term {binding.term}.",
    ]


def _term_lines(answer: MemoryAnswer, full: bool, *, most: int = MOST_TERMS) -> list[str]:
    alive = [term for term in answer.terms if answer.binding.phase in term.phases]
    parts = [(term.name, term.bytes) for term in alive]
    rows = memory_rows(parts, answer.peak_bytes, most=len(parts) if full else most)
    formulas = [f"{term.name} = {term.formula} = {term.substituted} [{term.source}]" for term in answer.terms]
    return ["Terms at the peak, GiB:", *table(rows), *(formulas if full else [])]


def _stage_lines(answer: MemoryAnswer) -> list[str]:
    if len(answer.stages) <= 1:
        return []
    most = sorted(answer.stages, key=lambda stage: -stage.peak_bytes)[:MOST_STAGES]
    rows = [
        (f"stage {each.stage}", f"{each.layers} layers", f"{each.in_flight:g} in flight", _gib(each.peak_bytes))
        for each in sorted(most, key=lambda stage: stage.stage)
    ]
    left = len(answer.stages) - len(most)
    return ["Pipeline stages:", *table(rows), *([f"  … and {left} lighter"] if left else [])]


def _job_lines(answer: MemoryAnswer) -> list[str]:
    count = answer.parameters
    share = "" if count.trainable == count.total else f", {units.format_count(count.trainable)} trainable"
    saved = answer.activations
    host = answer.host
    lines = [
        (
            f"Parameters: {units.format_count(count.total)}{share}, {units.format_count(count.per_rank)} on the rank. "
            f"Activations: {_gib(saved.saved_bytes)} saved, {_gib(saved.working_set_bytes)} working set, "
            f"{_gib(saved.loss_bytes)} loss."
        ),
        (
            f"Host per node: {_gib(host.cpu_bytes_per_node)} CPU, {_gib(host.nvme_bytes_per_node)} NVMe "
            f"({host.verdict.replace('_', ' ')})."
        ),
    ]
    return [*lines, *_time_lines(answer)]


def _time_lines(answer: MemoryAnswer) -> list[str]:
    time = answer.time
    if time.step_time_s is None or time.tokens_per_s is None:
        return [time.note] if time.note else []
    mfu = f", MFU {time.mfu:.0%}" if time.mfu is not None else ""
    days = f", {time.days:,.1f} days" if time.days is not None else ""
    cost = f", cost {time.cost:,.0f}" if time.cost is not None else ""
    step = units.format_seconds(time.step_time_s)
    return [f"Time: {step} a step, {time.tokens_per_s:,.0f} tokens/s{mfu}{days}{cost}."]


def _step_lines(steps: Sequence[Step], full: bool) -> list[str]:
    shown = steps if full else steps[:MOST_STEPS]
    lines = [
        f"{number}. {step.lever} {step.from_} -> {step.to}: {_gib(step.before)} -> {_gib(step.after)}. "
        f"{_short(step.because, full)}"
        for number, step in enumerate(shown, start=1)
    ]
    left = len(steps) - len(shown)
    return ["Steps:", *lines, *([f"… and {left} more steps"] if left else [])] if lines else []


def _alternative_lines(answer: SetupAnswer) -> list[str]:
    named = [("Next rung", answer.next_rung), ("Fastest", answer.fastest)]
    others = [("Alternative", each) for each in answer.alternatives[:2]]
    return [_alternative(label, each) for label, each in [*others, *named] if each and each.layout != answer.layout]


def _alternative(label: str, other: Alternative) -> str:
    fits = "" if other.fits else ", does not fit"
    return (
        f"{label} ({other.cost:.2f}x the cost, {_gib(other.peak_bytes)}{fits}): {layout_words(other.layout)}. "
        f"{_short(other.why, full=False)}"
    )


def _assumption_lines(assumptions: Iterable[Assumption], full: bool, *, most: int = MOST_ASSUMPTIONS) -> list[str]:
    """What nobody gave, first what could flip the verdict."""
    chosen = [each for each in assumptions if each.origin != "given"]
    chosen.sort(key=lambda each: (not each.flips_verdict, each.origin in {"catalog", "derived"}))
    shown = chosen if full else chosen[:most]
    words = [
        f"{each.argument}={_argument(each.value)} ({each.origin}{', flips the verdict' if each.flips_verdict else ''})"
        for each in shown
    ]
    left = len(chosen) - len(shown)
    more = f"; {left} more at detail=full" if left else ""
    return [f"Assumed: {'; '.join(words)}{more}."] if words else []


def _warning_lines(warnings: Sequence[str], full: bool) -> list[str]:
    return [f"Warning: {_short(each, full)}" for each in (warnings if full else warnings[:MOST_WARNINGS])]


def _next_lines(calls: Sequence[NextCall]) -> list[str]:
    return [f"Next: {each.tool}({_arguments(each.arguments)}) - {each.why}" for each in calls[:3]]


def _entry_line(entry: CatalogEntry) -> str:
    aliases = f" (also {', '.join(entry.aliases[:4])})" if entry.aliases else ""
    return f"- {entry.kind}: {entry.id}, {entry.title}{aliases}"


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={_argument(value)}" for name, value in arguments.items())


def _argument(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _gib(count_bytes: float) -> str:
    return units.format_bytes(count_bytes)


def _short(sentence: str, full: bool) -> str:
    return sentence if full or len(sentence) <= LONGEST_SENTENCE else sentence[: LONGEST_SENTENCE - 1].rstrip() + "…"


def _joined(blocks: Iterable[Sequence[str]]) -> str:
    return "\n\n".join("\n".join(block) for block in blocks if block)
