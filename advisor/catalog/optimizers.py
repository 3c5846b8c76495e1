"""Optimizers: what each keeps for a parameter, by any of its names."""

from __future__ import annotations

from functools import cache
from typing import Any

from advisor.catalog.reader import normalised, read_catalog_file
from advisor.errors import unknown_name
from advisor.types.case import OptimizerStates


@cache
def find_optimizer(name: str, *, pointer: str = "/optimizer") -> OptimizerStates:
    """The states of the optimizer with this id or alias; bytes are those beside fp32 weights.

    Raises:
        AdvisorError: ``unknown_optimizer`` with the nearest names.
    """
    entries: dict[str, dict[str, Any]] = read_catalog_file("optimizers.yaml")
    by_name = {normalised(known): key for key, entry in entries.items() for known in (key, *entry["aliases"])}
    key = by_name.get(normalised(name))
    if key is None:
        known = [*entries, *(alias for entry in entries.values() for alias in entry["aliases"])]
        raise unknown_name("optimizer", name, known, pointer=pointer)
    return _states(key, entries[key])


def _states(key: str, entry: dict[str, Any]) -> OptimizerStates:
    return OptimizerStates(
        name=key,
        matrix_bytes=entry["matrix"],
        other_bytes=entry["other"],
        follows_precision=entry["follows_precision"],
        factored=entry.get("factored", False),
        step_matrix_bytes=entry.get("step_matrix", 0),
        step_other_bytes=entry.get("step_other", 0),
        largest_tensor_bytes=entry.get("largest_tensor", 0),
        matrices_alone=entry.get("matrices_alone", False),
        in_backward=entry.get("in_backward", False),
    )
