"""The text of ``recommend_setup``: the layout, the steps that led there, what else there is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from advisor.units import format_bytes
from advisor.words.memory import host_lines, memory_lines, term_lines, time_lines, verdict_line
from advisor.words.phrases import assumption_lines, joined, layout_words, next_lines, short, warning_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.types import Alternative, Layout, SetupAnswer, Step

MOST_STEPS: Final = 9
STEP_CHARACTERS: Final = 600  # shared by the reasons of all steps, so that the whole stays short

_FITS: Final = {True: "fits", False: "does not fit", None: "fits if the node has the memory"}


def setup_text(answer: SetupAnswer, full: bool = False) -> str:
    """The answer of ``recommend_setup`` as text; ``full`` adds the memory of the winner term by term."""
    blocks = [
        [
            f"{verdict_line(answer.estimate)} {answer.framework}, {answer.rung.replace('-', ' ')}.",
            f"Layout: {layout_words(answer.layout)}",
            *memory_lines(answer.estimate),
            *host_lines(answer.estimate.host, full=full, unjudged=full),
            *time_lines(answer.estimate),
        ],
        term_lines(answer.estimate, full, most=5),
        _step_lines(answer.steps, full),
        _alternative_lines(answer),
        [
            f"Offered, not applied: {each.what} -> {format_bytes(each.peak_bytes)}, "
            f"{_FITS[each.fits]} ({each.changes})."
            for each in answer.suggestions[:3]
        ],
        assumption_lines(answer.assumptions, full, most=5),
        warning_lines(answer.warnings, full),
        next_lines(answer.next_calls),
    ]
    return joined(blocks)


def _step_lines(steps: Sequence[Step], full: bool) -> list[str]:
    shown = steps if full else steps[:MOST_STEPS]
    longest = _longest([len(step.because) for step in shown])
    lines = [
        f"{number}. {_move(step)}{step.because if full else short(step.because, longest)}"
        for number, step in enumerate(shown, start=1)
    ]
    left = len(steps) - len(shown)
    return ["Steps:", *lines, *([f"… and {left} more steps"] if left else [])] if lines else []


def _longest(lengths: Sequence[int], total: int = STEP_CHARACTERS) -> int:
    """Where to cut texts that share ``total`` characters: what short ones leave goes to the long ones."""
    for taken, length in enumerate(sorted(lengths)):
        share = total // (len(lengths) - taken)
        if length > share:
            return share
        total -= length
    return max(lengths, default=total)


def _move(step: Step) -> str:
    """What a step changes; nothing for one that only states where things stand."""
    if not step.lever:
        return ""
    return f"{step.lever} {step.from_} -> {step.to}: {format_bytes(step.before)} -> {format_bytes(step.after)}. "


def _alternative_lines(answer: SetupAnswer) -> list[str]:
    """The fastest layout, the best of the next rung and two more, each once."""
    named = [("Fastest", answer.fastest), ("Next rung", answer.next_rung)]
    others = [("Alternative", each) for each in answer.alternatives[:2]]
    lines: dict[Layout, str] = {answer.layout: ""}
    for label, each in [*named, *others]:
        if each is not None:
            lines.setdefault(each.layout, _alternative(label, each))
    return [line for line in lines.values() if line]


def _alternative(label: str, other: Alternative) -> str:
    fits = "" if other.fits else f", {_FITS[other.fits]}"
    layout = layout_words(other.layout.model_copy(update={"stage_layers": ()}))  # long, and no help in comparing
    return f"{label} ({other.cost:.2f}x the time, {format_bytes(other.peak_bytes)}{fits}): {layout}. {short(other.why)}"
