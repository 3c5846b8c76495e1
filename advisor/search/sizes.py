"""Objectives that may leave GPUs unused: the fewest that fit, or those that work most efficiently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor import budget
from advisor.constraints.expression import divisors
from advisor.errors import AdvisorError
from advisor.search.compare import compare
from advisor.types.case import Assumption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from advisor.search.choose import Found
    from advisor.types.arguments import CaseArguments
    from advisor.types.case import Cluster


def compare_sizes(arguments: CaseArguments, *, allow_paths: bool) -> list[Found]:
    """Every framework's search, the best first, on all GPUs or on as many as the objective asks for.

    Raises:
        AdvisorError: the request cannot be understood, or no layout of it is legal.
    """
    everything = compare(arguments, allow_paths=allow_paths)
    if arguments.objective not in ("fewest_gpus", "lowest_cost"):
        return everything
    smaller = _smaller(arguments, everything[0].case.cluster, allow_paths=allow_paths)
    fewest = arguments.objective == "fewest_gpus"
    best = next(smaller, everything) if fewest else min([everything, *smaller], key=_cost_of_a_token)
    return everything if best is everything else _in_full(arguments, best[0].case.cluster, allow_paths=allow_paths)


def _cost_of_a_token(compared: list[Found]) -> float:
    """Relative GPU time for a token; what a GPU costs an hour is the same for all of them."""
    winner = compared[0].winner
    return winner.cost if winner else float("inf")


def _smaller(arguments: CaseArguments, cluster: Cluster, *, allow_paths: bool) -> Iterator[list[Found]]:
    """The searches on fewer GPUs that fit on the GPUs alone, the smallest first."""
    for hardware in _shapes(cluster):
        if budget.is_spent_before("other numbers of GPUs"):
            return
        asked = arguments.model_copy(update={"hardware": hardware})
        try:
            compared = compare(asked, allow_paths=allow_paths, on_the_gpus=True)
        except AdvisorError:
            continue  # the layout arguments that were given do not divide this few GPUs
        if compared[0].winner:
            yield compared


def _in_full(arguments: CaseArguments, cluster: Cluster, *, allow_paths: bool) -> list[Found]:
    """The search of every rung on the GPUs that were chosen, which says so."""
    hardware = f"{cluster.nodes}x{cluster.gpus_per_node} {cluster.device.name}"
    compared = compare(arguments.model_copy(update={"hardware": hardware}), allow_paths=allow_paths)
    return [_said(found, hardware, arguments.objective or "") for found in compared]


def _shapes(cluster: Cluster) -> Iterator[str]:
    """Parts of one node, then whole nodes, up to but without all of them."""
    if cluster.nodes > 1:
        sizes = [(nodes, cluster.gpus_per_node) for nodes in divisors(cluster.nodes)[:-1]]
    else:
        sizes = [(1, gpus) for gpus in divisors(cluster.gpus_per_node)[:-1]]
    yield from (f"{nodes}x{gpus} {cluster.device.name}" for nodes, gpus in sizes)


def _said(found: Found, hardware: str, objective: str) -> Found:
    said = Assumption(argument="hardware", value=hardware, origin="derived", note=f"objective={objective}")
    kept = tuple(known for known in found.case.assumptions if known.argument != "hardware")
    return found.with_case(found.case.model_copy(update={"assumptions": (*kept, said)}))
