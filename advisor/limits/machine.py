"""The fewest GPUs or the smallest device on which a job fits: a layout is searched for on each."""

from __future__ import annotations

import math
from collections.abc import Iterator

from advisor import budget
from advisor.catalog.devices import find_device
from advisor.catalog.reader import entry_ids
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from advisor.limits.edge import Edge, Tried, first_that_fits, limit_answer
from advisor.resolve import resolve
from advisor.search.compare import compare
from advisor.types.arguments import CaseArguments
from advisor.types.case import Cluster
from advisor.types.sweeps import LimitAnswer
from advisor.units import format_gpus

#: Whole nodes are tried up to four one by one, then in eighths of each doubling.
MOST_NODES = 2048
FINEST = 8
OFFLOADS = ("offload_optimizer", "offload_parameters", "offload_activations")


def fewest_gpus(arguments: CaseArguments, *, allow_paths: bool) -> LimitAnswer:
    """The smallest part of a node, or count of whole nodes, on which some layout fits without offload.

    An offload counts only where the case gives one.
    """
    cluster = _cluster(arguments, allow_paths)
    node = cluster.gpus_per_node if cluster.gpus > 1 else cluster.device.gpus_per_node
    sizes = list(_sizes(node))
    hardware = [f"{nodes}x{gpus} {cluster.device.name}" for nodes, gpus in sizes]

    def leap(place: int, tried: Tried | None) -> int:
        """Twice the GPUs halve the need at best, so no fewer than these can do."""
        needed = math.prod(sizes[place]) * tried.times_too_large if tried else 0.0
        return next((index for index, size in enumerate(sizes) if math.prod(size) >= needed), place)

    singly = node if cluster.cpu_bytes_per_node is not None else 0
    edge = _in_gpus(
        first_that_fits(hardware, lambda line: _searched(arguments, line, allow_paths), leap, singly=singly)
    )
    notes = [_HOW_TRIED if edge.inside else f"nothing fits on up to {MOST_NODES:,} nodes"]
    if edge.inside and edge.outside and _fits_with_an_offload(arguments, edge.outside, allow_paths):
        notes.append(f"{format_gpus(int(edge.outside.value))} fit only with an offload; give one to count it")
    return limit_answer("gpus", edge, notes)


_HOW_TRIED = "tried: parts of a node, then whole nodes, in eighths of each doubling beyond eight"


def _in_gpus(edge: Edge) -> Edge:
    def counted(tried: Tried | None) -> Tried | None:
        return tried and Tried(tried.breakdown.case.cluster.gpus, tried.breakdown)

    return Edge(counted(edge.inside), counted(edge.outside), edge.tried)


def smallest_device(arguments: CaseArguments, *, allow_paths: bool) -> LimitAnswer:
    """The device with the least memory, in as many pieces as the case has, on which some layout fits."""
    cluster = _cluster(arguments, allow_paths)
    devices = sorted((find_device(name) for name in entry_ids("devices")), key=lambda d: (d.driver_bytes, d.name))
    built = [device.name for device in devices if cluster.gpus_per_node <= device.gpus_per_node]

    def measure(name: str) -> Tried | None:
        found = _searched(arguments, f"{cluster.nodes}x{cluster.gpus_per_node} {name}", allow_paths)
        return found and Tried(name, found.breakdown)

    edge = first_that_fits(built, measure)
    return limit_answer("device", edge, [] if edge.inside else ["it fits on no device of the catalog"])


def _searched(arguments: CaseArguments, hardware: str, allow_paths: bool) -> Tried | None:
    """The best layout on some hardware; the closest one where nothing fits; None where the case divides nothing."""
    asked = arguments.model_copy(update={"hardware": hardware})
    try:
        found = compare(asked, allow_paths=allow_paths, on_the_gpus=not _offload_given(arguments))[0]
    except AdvisorError as error:
        if error.code != "illegal_layout":
            raise
        return None
    return Tried(hardware, estimate(found.case))


def _offload_given(arguments: CaseArguments) -> bool:
    return any(getattr(arguments, name) is not None for name in OFFLOADS)


def _fits_with_an_offload(arguments: CaseArguments, tried: Tried, allow_paths: bool) -> bool:
    """Whether what does not fit on the GPUs alone does with an offload that nobody gave."""
    cluster = tried.breakdown.case.cluster
    hardware = f"{cluster.nodes}x{cluster.gpus_per_node} {cluster.device.name}"
    if _offload_given(arguments) or budget.is_spent_before("the same with an offload"):
        return False
    asked = arguments.model_copy(update={"hardware": hardware})
    return compare(asked, allow_paths=allow_paths)[0].winner is not None


def _cluster(arguments: CaseArguments, allow_paths: bool) -> Cluster:
    """The hardware by itself: what divides the work is fitted to each size later."""
    keep = {"model", "hf_config", "architecture", "hardware", "gpu_memory_gib", "cpu_memory_gib", "nvme_gib"}
    alone = {name: None for name in CaseArguments.model_fields if name not in keep}
    return resolve(arguments.model_copy(update=alone), allow_paths=allow_paths).cluster


def _sizes(gpus_per_node: int) -> Iterator[tuple[int, int]]:
    """Nodes and GPUs in each, the smaller first."""
    yield from ((1, gpus) for gpus in range(1, gpus_per_node + 1))
    nodes, step = 2, 1
    while nodes <= MOST_NODES:
        yield nodes, gpus_per_node
        nodes += step
        if nodes >= 2 * FINEST * step:
            step *= 2
