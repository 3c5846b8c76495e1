"""Changes to the job itself: another loss where the loss decides, what would fit where nothing does; none applied."""

from __future__ import annotations

import math
from itertools import chain, combinations
from typing import TYPE_CHECKING, Any

from advisor import budget
from advisor.checkpoints import is_sure, way
from advisor.constraints.legality import check
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from advisor.node_instants import ARGUMENTS
from advisor.node_memory import LEANEST
from advisor.search.choose import ON_THE_GPUS
from advisor.search.compare import frameworks, search_framework
from advisor.search.room import headroom, is_unknown, limit_bytes, times_of
from advisor.types.answers import Suggestion
from advisor.units import as_gib, format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.estimate import Breakdown
    from advisor.search.choose import Found, Pick
    from advisor.types.arguments import CaseArguments
    from advisor.types.case import Case, Training

MOST_GPUS = 16
SHORTEST_SEQUENCE = 512
#: Kernels that keep fewer copies of the logits than the standard one, the most usual first.
LEANER_LOSSES = ("fused", "chunked")
EIGHT_BIT = "adamw_8bit"
#: Kinds of change that leave the GPUs' memory as it is, so that an offload may stay.
OF_THE_NODE = ("ways", "cpu_memory")


def suggestions(arguments: CaseArguments, found: Found, *, allow_paths: bool) -> tuple[Suggestion, ...]:
    """A leaner loss where the loss sets the peak; what a node lacks; what would fit without offload, mildest first."""
    return (*_leaner_loss(found), *_ways_out(arguments, found, allow_paths=allow_paths))


def _leaner_loss(found: Found) -> Iterator[Suggestion]:
    """The first kernel of the loss that lowers the peak of the same layout, where the peak is at the loss."""
    now = estimate(found.case)
    if now.binding.peak_phase != "loss":
        return
    for loss in LEANER_LOSSES:
        case = found.case.model_copy(update={"training": found.case.training.model_copy(update={"loss": loss})})
        then = estimate(case)
        if then.peak_bytes < now.peak_bytes and not check(case):
            yield Suggestion(
                change={"loss": loss},
                what=f"loss={loss} in place of {found.case.training.loss}, same layout: {format_bytes(now.peak_bytes)}",
                peak_bytes=then.peak_bytes,
                fits=_fits(then),
                changes="how the loss is computed, nothing that is learnt",
            )
            return


def _fits(memory: Breakdown) -> bool | None:
    """Whether a layout fits; None where it leans on a node of which nobody said what it has."""
    fits = times_of(memory) <= 1
    return None if fits and is_unknown(memory.case, memory.case.layout) else fits


def _ways_out(arguments: CaseArguments, found: Found, *, allow_paths: bool) -> tuple[Suggestion, ...]:
    """Each kind of change at its mildest that fits, searched again; none when the job fits on the GPUs as it is."""
    if found.winner and found.winner.rung in ON_THE_GPUS:
        return ()
    offered: list[Suggestion] = []
    kinds: set[str] = set()
    for kind, change, what, changes in (*_of_the_node(found), *_changes(found)):
        if kind in kinds:
            continue
        if budget.is_spent_before("further ways out"):
            break
        pick = _pick_at(arguments, change, on_the_gpus=kind not in OF_THE_NODE, allow_paths=allow_paths)
        if pick is not None:
            kinds.add(kind)
            offered.append(
                Suggestion(change=change, what=what, peak_bytes=pick.peak_bytes, fits=pick.fits, changes=changes)
            )
    return tuple(offered)


def _of_the_node(found: Found) -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """What would serve where some layout fits the GPUs and the node has no room for it."""
    case, held = found.case, found.case.cluster.cpu_bytes_per_node
    least = _least_of_the_node(found)
    if found.winner is not None or held is None or least is None or least <= limit_bytes(case, held):
        return
    for change in _other_ways(case):
        what = ", ".join(f"{name}={value} in place of {way(case, name)}" for name, value in change.items())
        yield "ways", change, what, "how weights reach a node or a checkpoint leaves it, nothing that is learnt"
    more = math.ceil(as_gib(least / (1 - headroom(case))))
    yield "cpu_memory", {"cpu_memory_gib": more}, f"{more:,} GiB of CPU memory a node", "nothing but the hardware"


def _least_of_the_node(found: Found) -> float | None:
    """CPU memory that the leanest layout takes of those that fit the GPUs, none on NVMe that nobody gave."""
    unknown = found.case.cluster.nvme_bytes_per_node is None
    able = [
        rows.most[(rows.reserved <= found.limit_bytes) & ~(rows.columns.on_nvme & unknown)] for rows in found.opened
    ]
    return min((float(column.min()) for column in able if len(column)), default=None)


def _other_ways(case: Case) -> Iterator[dict[str, Any]]:
    """Other ways where one is sure: the framework's own, then the leanest; one argument, then both."""
    names = [name for name in ARGUMENTS.values() if is_sure(case, name) and way(case, name) != LEANEST]
    for chosen in chain.from_iterable(combinations(names, size) for size in (1, 2)):
        open_case = case.model_copy(update={"training": case.training.model_copy(update=dict.fromkeys(chosen))})
        own = {name: way(open_case, name) for name in chosen}
        if not any(own[name] == way(case, name) for name in chosen):
            yield own
        if set(own.values()) != {LEANEST}:
            yield dict.fromkeys(chosen, LEANEST)


def _changes(found: Found) -> Iterator[tuple[str, dict[str, Any], str, str]]:
    """Candidate changes by kind, the mildest of each kind first."""
    case = found.case
    cluster, training = case.cluster, case.training
    for change in _leaner_together(training):
        what = "together: " + ", ".join(f"{name}={value}" for name, value in change.items())
        yield "leaner", change, what, "rounding of the optimizer's moments and of stored scales at most"
    for factor in (2, 4, 8, MOST_GPUS):
        shape = _grown(case.cluster.nodes, cluster.gpus_per_node, cluster.device.gpus_per_node, factor)
        what = f"{factor} times the GPUs: {shape[0]}x{shape[1]} {cluster.device.name}"
        yield "gpus", {"hardware": f"{shape[0]}x{shape[1]} {cluster.device.name}"}, what, "nothing but the hardware"
    if training.method == "full":
        yield (
            "lora",
            {"method": "lora"},
            "train adapters (LoRA) instead of the weights",
            "what is trained: adapters only",
        )
    if training.method in ("full", "lora"):
        yield (
            "qlora",
            {"method": "qlora"},
            "train adapters over 4-bit weights (QLoRA)",
            "what is trained, over quantized weights",
        )
    if not training.optimizer.name.startswith(EIGHT_BIT):
        optimizer = _eight_bit(training)
        yield (
            "optimizer",
            {"optimizer": optimizer},
            "keep the optimizer's moments in 8 bits",
            "the optimizer's numerics",
        )
    length = training.sequence_length // 2
    while length >= SHORTEST_SEQUENCE:
        yield "sequence", {"sequence_length": length}, f"sequences of {length:,} tokens", "how much text a sample holds"
        length //= 2


def _leaner_together(training: Training) -> Iterator[dict[str, str]]:
    """What spares memory and leaves the training as it is, two and more at a time; one alone is offered by itself."""
    change: dict[str, str] = {}
    if training.loss == "standard":
        change["loss"] = LEANER_LOSSES[0]
    if training.quantization == "nf4":
        change["quantization"] = "nf4_double"
    if len(change) > 1:
        yield dict(change)
    if change and not training.optimizer.name.startswith(EIGHT_BIT):
        yield {**change, "optimizer": _eight_bit(training)}


def _eight_bit(training: Training) -> str:
    return "adamw_8bit_torchao" if training.framework in ("fsdp2", "torchtitan") else EIGHT_BIT


def _grown(nodes: int, per_node: int, full_node: int, factor: int) -> tuple[int, int]:
    """More GPUs: a node is filled before another is added."""
    wanted = nodes * per_node * factor
    node = min(max(full_node, per_node), wanted) if nodes == 1 else per_node
    return max(wanted // node, 1), node


def _pick_at(arguments: CaseArguments, change: dict[str, Any], *, on_the_gpus: bool, allow_paths: bool) -> Pick | None:
    """The layout with the lowest peak of each framework's best under a change; None when none fits."""
    asked = arguments.model_copy(update=change)
    picks = []
    for framework in frameworks(asked, allow_paths=allow_paths):
        try:
            again = search_framework(asked, framework, allow_paths=allow_paths, on_the_gpus=on_the_gpus)
        except AdvisorError:
            continue
        if again.winner:
            picks.append(again.winner)
    return min(picks, key=lambda pick: pick.peak_bytes, default=None)
