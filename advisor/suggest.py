"""Changes to the job itself: another loss where the loss decides, what would fit where nothing does; none applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor import budget
from advisor.constraints.legality import check
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from advisor.search.choose import ON_THE_GPUS
from advisor.search.compare import frameworks, search_framework
from advisor.types.answers import Suggestion
from advisor.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.search.choose import Found
    from advisor.types.arguments import CaseArguments
    from advisor.types.case import Training

MOST_GPUS = 16
SHORTEST_SEQUENCE = 512
#: Kernels that keep fewer copies of the logits than the standard one, the most usual first.
LEANER_LOSSES = ("fused", "chunked")
EIGHT_BIT = "adamw_8bit"


def suggestions(arguments: CaseArguments, found: Found, *, allow_paths: bool) -> tuple[Suggestion, ...]:
    """A leaner loss where the loss sets the peak; what would fit without offload, cheapest change first."""
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
                fits=then.reserved_bytes <= found.limit_bytes,
                changes="how the loss is computed, nothing that is learnt",
            )
            return


def _ways_out(arguments: CaseArguments, found: Found, *, allow_paths: bool) -> tuple[Suggestion, ...]:
    """Each kind of change at its mildest that fits, searched again; none when the job fits on the GPUs as it is."""
    if found.winner and found.winner.rung in ON_THE_GPUS:
        return ()
    offered: list[Suggestion] = []
    kinds: set[str] = set()
    for kind, change, what, changes in _changes(found):
        if kind in kinds:
            continue
        if budget.is_spent_before("further ways out"):
            break
        peak = _fits_at(arguments, change, allow_paths=allow_paths)
        if peak is not None:
            kinds.add(kind)
            offered.append(Suggestion(change=change, what=what, peak_bytes=peak, fits=True, changes=changes))
    return tuple(offered)


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


def _fits_at(arguments: CaseArguments, change: dict[str, Any], *, allow_paths: bool) -> int | None:
    """The peak of the best layout under a change; None when it does not fit on the GPUs."""
    asked = arguments.model_copy(update=change)
    peaks = []
    for framework in frameworks(asked, allow_paths=allow_paths):
        try:
            again = search_framework(asked, framework, allow_paths=allow_paths, on_the_gpus=True)
        except AdvisorError:
            continue
        if again.winner:
            peaks.append(again.winner.peak_bytes)
    return min(peaks, default=None)
