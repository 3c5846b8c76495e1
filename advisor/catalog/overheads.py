"""Memory that no tensor accounts for: fragmentation, communicators, workspaces. Each from overheads.yaml."""

from __future__ import annotations

from functools import cache

from advisor import units
from advisor.catalog.reader import read_catalog_file


@cache
def fragmentation_share() -> float:
    """Share by which the allocator's peak exceeds the peak of allocated memory."""
    return float(read_catalog_file("overheads.yaml")["fragmentation"]["value"])


@cache
def communicator_bytes() -> int:
    """NCCL's memory per GPU, outside the allocator."""
    return units.gib(read_catalog_file("overheads.yaml")["communicators"]["value"])


@cache
def workspace_bytes(generation: str) -> int:
    """Workspace of the matrix library for a device generation, inside the allocator."""
    entry = read_catalog_file("overheads.yaml")["workspace"]
    return int(entry.get(generation, entry["default"])["value"] * units.MIB)
