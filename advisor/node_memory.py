"""CPU memory and NVMe of a node: while weights load, in a step, while a checkpoint is saved; graded, and what to do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain

from advisor import phases
from advisor.checkpoints import is_sure, way
from advisor.columnwise import Number, at_least, choose
from advisor.estimate import Breakdown
from advisor.layers import longest_stages
from advisor.lines import Line
from advisor.node_instants import ARGUMENTS, LOAD, SAVE, Beside, lines_beside
from advisor.placement import Place
from advisor.types.case import Assumption, Case, Cluster
from advisor.types.host import Host, HostInstant, HostPart, Verdict
from advisor.units import format_bytes

#: Grades of what is known, from the best to the worst, and of what is not.
GRADES: tuple[Verdict, ...] = ("comfortable", "fits", "tight", "does_not_fit", "needs_info")
_NO_FIT, _UNKNOWN = GRADES.index("does_not_fit"), GRADES.index("needs_info")
LEANEST = "by_tensor"
#: Ways of loading that offload does not change.
WHOLE = ("every_rank", "every_rank_fp32")
_WHEN: Mapping[str, str] = {LOAD: "to load", "step": "in a step", SAVE: "to save"}


def host(breakdown: Breakdown) -> Host:
    """What a node needs, instant by instant, and whether it has that."""
    case, nvme = breakdown.case, breakdown.node_bytes(phases.NVME)
    step = HostInstant(
        instant="step", bytes_per_node=breakdown.node_bytes(phases.HOST), counts=True, parts=_of_step(breakdown)
    )
    beside = {instant: _instant(case, instant, line, step) for instant, line in host_lines(breakdown)}
    instants = tuple(each for each in (beside.get(LOAD), step, beside.get(SAVE)) if each is not None)
    binding = max((each for each in instants if each.counts), key=lambda each: each.bytes_per_node)
    grade = host_grade(case, most=binding.bytes_per_node, offloaded=step.bytes_per_node, nvme=nvme)
    return Host(
        cpu_bytes_per_node=step.bytes_per_node,
        nvme_bytes_per_node=nvme,
        verdict=GRADES[grade],
        cpu_bytes_of_node=case.cluster.cpu_bytes_per_node,
        nvme_bytes_of_node=case.cluster.nvme_bytes_per_node,
        instants=instants,
        binding=binding.instant,
    )


def host_lines(breakdown: Breakdown) -> Iterator[tuple[Beside, Line]]:
    """What loading and saving take of a node with the heaviest stage."""
    case = breakdown.case
    stages = longest_stages(Place(case, case.layout).starts, case.model.moe_layers)
    places = [breakdown.places.get(stage) or Place(case, case.layout, stage) for stage in stages]
    for alike in zip(*map(lines_beside, places), strict=True):
        yield max(alike, key=lambda found: found[1].at(found[0]))


def most_bytes(breakdown: Breakdown) -> int:
    """CPU memory of a node at the instant that needs most, of those that count."""
    lines = dict(host_lines(breakdown))
    held = {each: line.at(each) for each, line in lines.items() if is_sure(breakdown.case, ARGUMENTS[each])}
    return max(held.get(LOAD, 0), held.get(SAVE, 0) + breakdown.node_bytes(phases.HOST))


def _of_step(breakdown: Breakdown) -> tuple[HostPart, ...]:
    """What the heaviest stage's ranks offload, slot by slot, the largest first."""
    if not breakdown.node_bytes(phases.HOST):
        return ()
    stage = breakdown.stage(max(breakdown.rows, key=lambda row: row.host_bytes).stage)
    ranks = breakdown.case.cluster.gpus_per_node
    parts = (_part(line, phases.HOST, ranks) for line in stage.lines if line.at(phases.HOST))
    return tuple(sorted(parts, key=lambda part: -part.bytes))


def _instant(case: Case, instant: Beside, line: Line, step: HostInstant) -> HostInstant:
    """What is offloaded rests there while a checkpoint is saved, page-locked buffers of activations among it."""
    resting = step.parts if instant == SAVE else ()
    parts = (_part(line, instant, 1), *resting)
    return HostInstant(
        instant=instant,
        bytes_per_node=sum(part.bytes for part in parts),
        way=way(case, ARGUMENTS[instant]),
        counts=is_sure(case, ARGUMENTS[instant]),
        parts=parts,
    )


def _part(line: Line, instant: str, ranks: int) -> HostPart:
    """A line that counts so often on a rank, for so many ranks."""
    count = line.times(instant) * ranks
    formula, substituted = line.term.formula, line.term.substituted(line.values)
    return HostPart(
        slot=line.term.slot,
        bytes=line.at(instant) * ranks,
        formula=formula if count == 1 else f"n · ({formula})",
        substituted=substituted if count == 1 else f"{count:g} · ({substituted})",
        source=line.term.source,
    )


# --- the grade, of one layout or of columns of them -------------------------------------------------------------------


def host_grade(case: Case, *, most: Number, offloaded: Number, nvme: Number) -> Number:
    """The place in ``GRADES``: the worst share of what a node has.

    Args:
        case: the job.
        most: CPU memory of a node at the instant that needs most, of those that count.
        offloaded: CPU memory in a step; what is unknown decides only where the layout itself leans on it.
        nvme: bytes on NVMe.
    """
    cluster, allowed = case.cluster, 1 - case.policy.headroom
    share = host_share(cluster, most=most, nvme=nvme)
    grade = (share > allowed / 2) * 1 + (share > allowed) * 1 + (share > 1) * 1
    leans = [
        needed > 0
        for needed, held in ((offloaded, cluster.cpu_bytes_per_node), (nvme, cluster.nvme_bytes_per_node))
        if held is None
    ]
    for unknown in leans:
        grade = choose(unknown & (grade < _NO_FIT), _UNKNOWN, grade)
    return grade


def host_share(cluster: Cluster, *, most: Number, nvme: Number) -> Number:
    """The largest share that is needed of what a node has; of what is unknown, or not needed, none."""
    return at_least(_share(most, cluster.cpu_bytes_per_node), _share(nvme, cluster.nvme_bytes_per_node))


def _share(needed: Number, held: int | None) -> Number:
    if held is None:
        return 0.0
    return choose(needed > 0, needed / held if held else float("inf"), 0.0)


# --- what is said ----------------------------------------------------------------------------------------------------


def host_warnings(case: Case, found: Host) -> Iterator[str]:
    """What a node lacks, or may lack, and what would change that; the first in an answer."""
    return chain(_unknown(case), _lacking(case, found), _assumed(found))


def _unknown(case: Case) -> Iterator[str]:
    """What the layout's offloads need of the node, where nobody said whether it has that; NVMe takes memory as well."""
    layout, cluster = case.layout, case.cluster
    targets = (layout.offload_optimizer, layout.offload_parameters, layout.offload_activations)
    if set(targets) != {"none"} and cluster.cpu_bytes_per_node is None:
        yield "the layout needs host memory and it is unknown: give cpu_memory_gib"
    if "nvme" in targets and cluster.nvme_bytes_per_node is None:
        yield "the layout needs NVMe space and it is unknown: give nvme_gib"


def _lacking(case: Case, found: Host) -> Iterator[str]:
    """The instant that a node's memory does not serve with the headroom left free, and what would."""
    (binding,) = (each for each in found.instants if each.instant == found.binding)
    if _is_beyond(case, binding.bytes_per_node, found.cpu_bytes_of_node):
        done = f" by {ARGUMENTS[binding.instant]}={binding.way}" if binding.way else ""
        needs = _needs(binding.bytes_per_node, found.cpu_bytes_of_node, "CPU memory")
        yield f"{needs} {_WHEN[binding.instant]}{done}: {' or '.join(_remedies(found, binding))}"
    if _is_beyond(case, found.nvme_bytes_per_node, found.nvme_bytes_of_node):
        yield (
            f"{_needs(found.nvme_bytes_per_node, found.nvme_bytes_of_node, 'NVMe')}: "
            "less offload or more nodes or a larger nvme_gib"
        )


def _is_beyond(case: Case, needed: int, held: int | None) -> bool:
    return held is not None and needed > held * (1 - case.policy.headroom)


def _needs(needed: int, held: int | None, what: str) -> str:
    return f"a node has {format_bytes(held or 0)} of {what} and needs {format_bytes(needed)}"


def _remedies(found: Host, binding: HostInstant) -> Iterator[str]:
    """What would serve at an instant; of what one rank gathers, or each has whole, more nodes divide nothing."""
    if binding.way not in ("", LEANEST):
        yield f"another {ARGUMENTS[binding.instant]} ({LEANEST} needs least)"
    offloaded = found.cpu_bytes_per_node and binding.way not in WHOLE
    if offloaded:
        yield "less offload"
    if offloaded or binding.way == "staged":
        yield "more nodes"
    yield "a larger cpu_memory_gib"


def _assumed(found: Host) -> Iterator[str]:
    """An instant that does not fit where the way that it is computed for is only assumed."""
    held = found.cpu_bytes_of_node
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
