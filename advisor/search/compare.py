"""Several frameworks searched for one job, and which of them is best."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from advisor.constraints.legality import require_legal
from advisor.constraints.rulebook import law
from advisor.errors import AdvisorError
from advisor.resolve import resolve
from advisor.search.batch import with_batch
from advisor.search.choose import Found, search, simplicity, tie_band
from advisor.types.case import Assumption, Layout
from advisor.units import format_gpus

if TYPE_CHECKING:
    from collections.abc import Sequence

    from advisor.types.arguments import CaseArguments

#: What is compared when nobody names a framework, on one GPU and on several.
ONE_GPU = ("single", "deepspeed")
SEVERAL_GPUS = ("megatron", "megatron_fsdp", "fsdp2")
#: Beside Megatron itself its sharded form is looked at where it differs: it divides more, and without a pipeline.
WITHOUT_PIPELINE = ("megatron_fsdp",)
#: NVMe offload exists nowhere else.
NVME = ("deepspeed",)


def compare(arguments: CaseArguments, *, allow_paths: bool, on_the_gpus: bool = False) -> list[Found]:
    """One search a framework, the best first; an error only when every framework has one.

    Args:
        arguments: the job.
        allow_paths: whether files that it names may be read.
        on_the_gpus: whether layouts that offload are not looked at.

    Raises:
        AdvisorError: the request cannot be understood, or no layout of it is legal.
    """
    found: list[Found] = []
    errors: list[AdvisorError] = []
    for framework in frameworks(arguments, allow_paths=allow_paths):
        try:
            found.append(search_framework(arguments, framework, allow_paths=allow_paths, on_the_gpus=on_the_gpus))
        except AdvisorError as error:
            if error.code == "beyond_budget" and not any(one.winner for one in found):
                raise
            errors.append(error)
    if not found:
        raise errors[0]
    if arguments.framework is None and arguments.nvme_gib and not (on_the_gpus or any(one.winner for one in found)):
        found += [search_framework(arguments, framework, allow_paths=allow_paths) for framework in NVME]
    return _guarded(_simplest_first(sorted(found, key=_order)))


def frameworks(arguments: CaseArguments, *, allow_paths: bool) -> Sequence[str]:
    """The frameworks to compare: the one that is named, or those that the hardware and the offload suggest."""
    if arguments.framework:
        return (arguments.framework,)
    if "nvme" in (arguments.offload_optimizer, arguments.offload_parameters):
        return NVME
    plain = arguments.model_copy(update=dict.fromkeys((*Layout.model_fields, "global_batch")))
    return ONE_GPU if resolve(plain, allow_paths=allow_paths).cluster.gpus == 1 else SEVERAL_GPUS


def search_framework(
    arguments: CaseArguments, framework: str, *, allow_paths: bool, on_the_gpus: bool = False
) -> Found:
    """Search one framework; ``on_the_gpus`` as in :func:`compare`.

    Raises:
        AdvisorError: the request cannot be understood, or no layout of it is legal.
    """
    # A global batch need not divide plain data parallelism: the search looks for layouts that it does divide.
    asked = arguments.model_copy(update={"framework": framework, "global_batch": None})
    case = resolve(asked, allow_paths=allow_paths)
    if framework in WITHOUT_PIPELINE and arguments.framework is None:
        case = case.model_copy(update={"free": case.free - {"pipeline_parallel"}})
    if arguments.global_batch:
        training = case.training.model_copy(update={"global_batch": arguments.global_batch})
        given = Assumption(argument="global_batch", value=arguments.global_batch, origin="given")
        case = case.model_copy(update={"training": training, "assumptions": (*case.assumptions, given)})
    found = search(with_batch(case), on_the_gpus=on_the_gpus)
    if found.winner is None and found.closest is None:
        require_legal(case)
        detail = (
            f"no layout on {format_gpus(case.cluster.gpus)} is legal in {framework} with a global batch of "
            f"{found.case.training.global_batch:,} and the layout arguments given; leave some of them out"
        )
        raise AdvisorError("illegal_layout", detail)
    return found


def _simplest_first(found: list[Found]) -> list[Found]:
    """Frameworks whose best cost as good as the same stand in the order of the ladder's preferences."""
    first = found[0].winner
    if first is None:
        return found
    most = first.cost * (1 + tie_band(found[0].case))
    near = [one for one in found if one.winner and one.winner.rung == first.rung and one.winner.cost <= most]
    return [*sorted(near, key=lambda one: simplicity(one.case)), *found[len(near) :]]


def _guarded(found: list[Found]) -> list[Found]:
    """The ladder's one exception, between frameworks: a rung is left when the next one's best is that much cheaper."""
    rungs, first = law().ladder.rungs, found[0]
    place = next((place for place, rung in enumerate(rungs) if first.winner and rung.id == first.winner.rung), None)
    guard = None if place is None or first.case.policy.law == "strict" else rungs[place].leave_if_costlier_by
    if guard is None or place is None or first.winner is None:
        return found
    below = [one for one in found if one.winner and one.winner.rung == rungs[place + 1].id]
    cheaper = [one for one in below if one.winner and one.winner.cost * (1 + guard) < first.winner.cost]
    return [*cheaper, *(one for one in found if one not in cheaper)]


def _order(found: Found) -> tuple[Any, ...]:
    """What fits before what does not; the higher rung unless speed alone counts, the lower cost, the smaller need."""
    rungs = [rung.id for rung in law().ladder.rungs]
    if found.winner is None:
        return (1, len(rungs), 0.0, found.closest.times_too_large if found.closest else 0.0)
    rung = 0 if found.case.policy.objective == "throughput" else rungs.index(found.winner.rung)
    return (0, rung, found.winner.cost, found.winner.reserved_bytes)
