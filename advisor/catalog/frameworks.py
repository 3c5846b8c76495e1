"""Frameworks: what each does when the user does not say, and which dimensions and offloads it knows."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic import Field

from advisor.catalog.reader import normalised, read_catalog_file
from advisor.errors import unknown_name
from advisor.types import arguments as a
from advisor.types.base import CountOrZero, Value


class Ways(Value):
    """How a framework's jobs load weights, or save checkpoints, when nobody says otherwise.

    Attributes:
        by_stage: the way, by the ZeRO stage from which it holds.
        own: whether the framework does it itself; else a script does, and the way is the usual one.
        source: where that was read.
    """

    by_stage: Mapping[int, a.WeightLoading | a.CheckpointSaving]
    own: bool
    source: str


class FrameworkFacts(Value):
    """One training framework, at the version its facts were read."""

    name: a.Framework
    title: str
    version: str
    implementation: a.Implementation
    loss: a.LossKernel
    attention: a.AttentionKernel
    precision: str
    optimizer: str = Field(description="the optimizer entry that a bare adamw means here")
    zero_stages: tuple[int, ...]
    dimensions: tuple[str, ...] = Field(description="layout arguments that it can set above 1")
    offload_optimizer: tuple[a.OffloadTarget, ...]
    offload_parameters: tuple[a.OffloadTarget, ...]
    offload_activations: tuple[a.OffloadTarget, ...]
    reduce_bucket_elements: CountOrZero = Field(description="gradient elements in flight; 0: no bucket of its own")
    gather_bucket_elements: CountOrZero
    gradients_copied_to_buckets: bool = Field(description="the buckets together hold a second copy of the gradients")
    weight_loading: Ways
    checkpoint_saving: Ways
    source: str
    checked_on: str
    notes: str = ""


@cache
def find_framework(name: str, *, pointer: str = "/framework") -> FrameworkFacts:
    """The framework with this name or alias.

    Raises:
        AdvisorError: ``unknown_framework`` with the nearest names.
    """
    entries: dict[str, dict[str, Any]] = read_catalog_file("frameworks.yaml")
    by_name = {normalised(known): key for key, entry in entries.items() for known in (key, *entry["aliases"])}
    key = by_name.get(normalised(name))
    if key is None:
        raise unknown_name("framework", name, entries, pointer=pointer)
    facts = {field: value for field, value in entries[key].items() if field != "aliases"}
    return FrameworkFacts.model_validate({**facts, "name": key, "checked_on": str(facts["checked_on"])})
