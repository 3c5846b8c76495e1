"""The collectives on small lists, so that their identity can be seen: all-reduce is reduce-scatter, then all-gather."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final

Vector = tuple[float, ...]


def all_gather(ranks: Sequence[Vector]) -> Vector:
    """What every rank holds afterwards: all parts in rank order."""
    return tuple(number for rank in ranks for number in rank)


def all_reduce(ranks: Sequence[Vector]) -> Vector:
    """What every rank holds afterwards: the sums."""
    return tuple(map(sum, zip(*ranks, strict=True)))


def reduce_scatter(ranks: Sequence[Vector]) -> tuple[Vector, ...]:
    """What each rank holds afterwards: its part of the sums, as even as they divide."""
    sums, count = all_reduce(ranks), len(ranks)
    ends = [len(sums) * rank // count for rank in range(count + 1)]
    if len(sums) < count:  # fewer sums than ranks: one each, from the first rank on
        ends = [min(rank, len(sums)) for rank in range(count + 1)]
    return tuple(sums[start:end] for start, end in pairwise(ends))


#: What the first rank holds after each collective.
ON_FIRST_RANK: Final[Mapping[str, Callable[[Sequence[Vector]], Vector]]] = MappingProxyType(
    {"all_gather": all_gather, "all_reduce": all_reduce, "reduce_scatter": lambda ranks: reduce_scatter(ranks)[0]}
)
