"""CPU memory and NVMe of a node: while weights load, in a step, while a checkpoint is saved; graded.

Files that are mapped and not changed are pages that the system takes back, and do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Literal

from advisor import phases
from advisor.checkpoints import LOADING, SAVING, is_sure, way
from advisor.choices import choices
from advisor.estimate import Breakdown
from advisor.layers import longest_stages
from advisor.lines import Line, whole_bytes
from advisor.placement import Place
from advisor.symbols import Values
from advisor.terms import select
from advisor.types.answers import Host, HostInstant, Verdict
from advisor.types.case import Assumption, Case
from advisor.units import format_bytes

Beside = Literal["load", "save"]
LOAD: Beside = "load"
SAVE: Beside = "save"
#: What fills each instant beside the step, and the argument that says how it is done.
SLOTS: Mapping[Beside, str] = {LOAD: "host.loading", SAVE: "host.saving"}
ARGUMENTS: Mapping[str, str] = {LOAD: LOADING, SAVE: SAVING}


def host(breakdown: Breakdown) -> Host:
    """What a node needs, instant by instant, and whether it has that."""
    offloaded, nvme = breakdown.node_bytes(phases.HOST), breakdown.node_bytes(phases.NVME)
    step = HostInstant(instant="step", bytes_per_node=offloaded, counts=True)
    beside = {instant: _instant(breakdown, instant, line, offloaded) for instant, line in host_lines(breakdown)}
    in_turn = (beside.get(LOAD), step, beside.get(SAVE))
    instants = tuple(each for each in in_turn if each is not None)
    binding = max((each for each in instants if each.counts), key=lambda each: each.bytes_per_node)
    return Host(
        cpu_bytes_per_node=offloaded,
        nvme_bytes_per_node=nvme,
        verdict=_verdict(breakdown.case, offloaded, nvme, most=binding.bytes_per_node),
        cpu_bytes_of_node=breakdown.case.cluster.cpu_bytes_per_node,
        instants=instants,
        binding=binding.instant,
    )


def host_lines(breakdown: Breakdown) -> Iterator[tuple[Beside, Line]]:
    """What loading and saving take of a node with the heaviest stage; an article knows neither."""
    case = breakdown.case
    terms = select(choices(case) | {"ffn_kind": "none"})
    stages = longest_stages(Place(case, case.layout).starts, case.model.moe_layers)
    values = [Values(breakdown.places.get(stage) or Place(case, case.layout, stage)) for stage in stages]
    for instant, slot in SLOTS.items():
        if slot in terms:
            lines = [Line(terms[slot], each, whole_bytes(terms[slot](each)), {instant: 1}) for each in values]
            yield instant, max(lines, key=lambda line: line.at(instant))


def host_warnings(breakdown: Breakdown, found: Host) -> Iterator[str]:
    """An instant that does not fit where the way that it is computed for is only assumed."""
    held = breakdown.case.cluster.cpu_bytes_per_node
    for each in found.instants:
        if held is not None and not each.counts and each.bytes_per_node > held:
            argument = ARGUMENTS[each.instant]
            yield (
                f"a node needs {format_bytes(each.bytes_per_node)} of CPU memory to {each.instant} with the usual "
                f"{argument}={each.way}, and has {format_bytes(held)}: give {argument} if yours is another"
            )


def host_assumptions(breakdown: Breakdown, found: Host) -> Iterator[Assumption]:
    """How weights are loaded and checkpoints saved, where nobody said."""
    for each in found.instants:
        if each.way and getattr(breakdown.case.training, ARGUMENTS[each.instant]) is None:
            yield _assumption(ARGUMENTS[each.instant], each.way, each.counts)


@cache
def _assumption(argument: str, value: str, sure: bool) -> Assumption:
    origin, note = ("catalog", "the framework's own") if sure else ("default", "usual; the script decides")
    return Assumption(argument=argument, value=value, origin=origin, note=note)


def _instant(breakdown: Breakdown, instant: Beside, line: Line, offloaded: int) -> HostInstant:
    """What is offloaded rests there while a checkpoint is saved; it is not yet there while weights load."""
    case, argument = breakdown.case, ARGUMENTS[instant]
    return HostInstant(
        instant=instant,
        bytes_per_node=line.at(instant) + (offloaded if instant == SAVE else 0),
        way=way(case, argument),
        counts=is_sure(case, argument),
        formula=line.term.formula,
        substituted=line.term.substituted(line.values),
        source=line.term.source,
    )


def _verdict(case: Case, offloaded: int, nvme: int, *, most: int) -> Verdict:
    """The worst share of what a node has; what is unknown decides only where the layout itself leans on it."""
    cluster, headroom = case.cluster, case.policy.headroom
    if (offloaded and cluster.cpu_bytes_per_node is None) or (nvme and cluster.nvme_bytes_per_node is None):
        return "needs_info"
    pairs = ((most, cluster.cpu_bytes_per_node), (nvme, cluster.nvme_bytes_per_node))
    worst = max(_share(needed, held) for needed, held in pairs)
    if worst <= (1 - headroom) / 2:
        return "comfortable"
    if worst <= 1 - headroom:
        return "fits"
    return "tight" if worst <= 1 else "does_not_fit"


def _share(needed: int, held: int | None) -> float:
    """How much of what is there is needed; of what is unknown, or not needed, nothing."""
    if held is None or not needed:
        return 0.0
    return needed / held if held else float("inf")
