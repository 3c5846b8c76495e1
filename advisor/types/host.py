"""What a node itself must hold, and the grades of memory: a GPU's and the node's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, get_args

from pydantic import Field

from advisor.types.base import Value

#: From the best to the worst.
Verdict = Literal["comfortable", "fits", "tight", "needs_info", "does_not_fit", "invalid"]


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The one of these verdicts that decides."""
    return max(verdicts, key=get_args(Verdict).index)


class HostPart(Value):
    """What one slot takes of a node's CPU memory; the ranks of the stage that needs most, all together."""

    slot: str
    bytes: int
    formula: str
    substituted: str
    source: str


class HostInstant(Value):
    """CPU memory of a node at one instant: what the job itself holds there."""

    instant: Literal["load", "step", "save"]
    bytes_per_node: int
    way: str = Field(default="", description="weight_loading or checkpoint_saving that it is computed for")
    counts: bool = Field(description="the verdict rests on it; a way that nobody gave and a script decides does not")
    parts: tuple[HostPart, ...] = Field(default=(), description="what fills it; the parts add up")


class Host(Value):
    """Memory the node itself needs."""

    cpu_bytes_per_node: int = Field(description="what the layout offloads, during a step")
    nvme_bytes_per_node: int
    verdict: Verdict
    cpu_bytes_of_node: int | None = Field(default=None, description="what the node has; null: unknown")
    nvme_bytes_of_node: int | None = Field(default=None, description="NVMe that the node has; null: unknown")
    instants: tuple[HostInstant, ...] = Field(default=(), description="CPU memory while loading, stepping, saving")
    binding: str = Field(default="step", description="the instant that needs most CPU memory, of those that count")

    @property
    def most_bytes_per_node(self) -> int:
        """CPU memory at the binding instant."""
        return max([self.cpu_bytes_per_node, *(each.bytes_per_node for each in self.instants if each.counts)])
