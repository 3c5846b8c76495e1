"""Whether a job has room, on the GPU and on its node, with the headroom left free: one layout, or columns of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor import certainty, phases
from advisor.columnwise import Number, at_least
from advisor.constraints.rulebook import overlay
from advisor.node_memory import host_share, most_bytes

if TYPE_CHECKING:
    from advisor.estimate import Breakdown
    from advisor.types.case import Case, Layout


def limit_bytes(case: Case, usable: int) -> int:
    """Usable bytes less the headroom."""
    return int(usable * (1 - headroom(case)))


def headroom(case: Case) -> float:
    """The share that is left free: the user's or the site's, whichever is larger."""
    site = overlay(case.policy.rules).headroom
    return max(case.policy.headroom, site.share if site else 0.0)


def times_too_large(case: Case, limit: int, *, reserved: Number, most: Number, nvme: Number) -> Number:
    """The need as a multiple of what there is, on the GPU or on its node; at most 1 where it fits.

    What a node has and nobody said refuses nothing; the answer says that it is unknown.

    Args:
        case: the job.
        limit: bytes of a GPU that may be reserved.
        reserved: bytes on the worst rank.
        most: CPU memory of a node at the instant that needs most, of those that count.
        nvme: bytes of a node on NVMe.
    """
    gpu = reserved / limit if limit > 0 else reserved * float("inf")
    return at_least(gpu, host_share(case.cluster, most=most, nvme=nvme) / (1 - headroom(case)))


def times_of(breakdown: Breakdown) -> float:
    """The same of one layout by itself."""
    return float(
        times_too_large(
            breakdown.case,
            limit_bytes(breakdown.case, breakdown.usable_bytes),
            reserved=certainty.reserved_bytes(breakdown),
            most=most_bytes(breakdown),
            nvme=breakdown.node_bytes(phases.NVME),
        )
    )


def is_unknown(case: Case, layout: Layout) -> bool:
    """Whether a layout leans on a node of which nobody said what it has."""
    targets, cluster = {layout.offload_optimizer, layout.offload_parameters}, case.cluster
    cpu, nvme = targets != {"none"}, "nvme" in targets
    return (cpu and cluster.cpu_bytes_per_node is None) or (nvme and cluster.nvme_bytes_per_node is None)
