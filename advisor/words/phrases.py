"""Phrases that several answers share: assumptions, warnings, next calls, layouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from advisor.types import Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from advisor.types import Assumption, NextCall

VERDICTS: Final = {
    "comfortable": "COMFORTABLE: even the high end of the band fits with the headroom",
    "fits": "FITS: the expected peak leaves the headroom free",
    "tight": "TIGHT: the expected peak fits, without the headroom",
    "does_not_fit": "DOES NOT FIT",
    "invalid": "INVALID layout",
    "needs_info": "NEEDS INFO: a missing argument decides",
}
MOST_ASSUMPTIONS: Final = 8
#: Said first whatever else is left out: what most often decides (docs/accuracy.md).
DECISIVE: Final = ("framework", "recompute", "precision", "sequence_length", "micro_batch", "optimizer")
MOST_WARNINGS: Final = 3
LONGEST_SENTENCE: Final = 200


def layout_words(layout: Layout) -> str:
    """A layout as the arguments that say something: ``"tensor_parallel=8 zero_stage=1"``."""
    told = layout.model_dump(mode="json", exclude_defaults=True, exclude=_silent(layout))
    return " ".join(f"{name}={argument(value)}" for name, value in told.items()) or "one GPU, nothing split"


def _silent(layout: Layout) -> set[str]:
    """Arguments that say nothing beside the others: how to divide what is not divided."""
    shares = layout.data_parallel_shard * layout.context_parallel > 1
    speaks = {
        ("sequence_parallel",): layout.tensor_parallel > 1,
        ("pipeline_schedule", "virtual_stages", "stage_layers"): layout.pipeline_parallel > 1,
        ("context_parallel_kind",): layout.context_parallel > 1,
        ("zero_stage",): shares,
        ("reshard_after_forward",): shares and layout.zero_stage == 3,  # noqa: PLR2004 - only stage 3 has the choice
        ("offload_fraction",): layout.offload_optimizer != "none",
    }
    return {name for names, says in speaks.items() if not says for name in names}


def assumption_lines(assumptions: Iterable[Assumption], full: bool, *, most: int = MOST_ASSUMPTIONS) -> list[str]:
    """What nobody gave: first what could flip the verdict, last what only says that a lever is not used."""
    chosen = sorted((each for each in assumptions if each.origin != "given"), key=_weight)
    shown = chosen if full else chosen[:most]
    words = [
        f"{each.argument}={argument(each.value)} ({each.origin}{', flips the verdict' if each.flips_verdict else ''})"
        for each in shown
    ]
    left = len(chosen) - len(shown)
    more = f"; {left} more at detail=full" if left else ""
    return [f"Assumed: {'; '.join(words)}{more}."] if words else []


def _weight(assumption: Assumption) -> tuple[bool, int, bool, bool]:
    lever = Layout.model_fields.get(assumption.argument)
    unused = lever is not None and lever.default == assumption.value
    name = assumption.argument
    place = DECISIVE.index(name) if name in DECISIVE else len(DECISIVE)
    return not assumption.flips_verdict, place, unused, assumption.origin in {"catalog", "derived"}


def warning_lines(warnings: Sequence[str], full: bool) -> list[str]:
    """The warnings, the first few and shortened unless all are asked for."""
    return [f"Warning: {each if full else short(each)}" for each in (warnings if full else warnings[:MOST_WARNINGS])]


def next_lines(calls: Sequence[NextCall]) -> list[str]:
    """At most three complete calls that answer the next question."""
    return [f"Next: {each.tool}({_arguments(each.arguments)}) - {each.why}" for each in calls[:3]]


def short(sentence: str, longest: int = LONGEST_SENTENCE) -> str:
    """A sentence of at most ``longest`` characters."""
    return sentence if len(sentence) <= longest else sentence[: longest - 1].rstrip() + "…"


def joined(blocks: Iterable[Sequence[str]]) -> str:
    """Blocks of lines with a blank line between them, empty ones left out."""
    return "\n\n".join("\n".join(block) for block in blocks if block)


def argument(value: Any) -> str:
    """A value as one writes it in a call."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)


def _arguments(arguments: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={argument(value)}" for name, value in arguments.items())
