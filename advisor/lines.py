"""The lines of a stage: each slot with the term that fills it, its bytes, and how often it counts at each instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from advisor import phases
from advisor.choices import choices
from advisor.columnwise import Number, nowhere
from advisor.formula import Term
from advisor.placement import Place
from advisor.presence import (
    Presence,
    always_present,
    checkpoint_presence,
    layer_presence,
    outer_presence,
    selected_presence,
)
from advisor.symbols import Values
from advisor.terms import select
from advisor.types.case import Case, Layout


class Line(NamedTuple):
    """One slot on one rank: the term that fills it, its value, and how often it counts in each phase."""

    term: Term
    values: Values
    amount: Number
    presence: Presence

    def at(self, phase: str) -> int:
        """Whole bytes in a phase."""
        amount = self.amount * self.presence.get(phase, 0)
        return amount if type(amount) is int else int(round(amount))  # noqa: RUF046 - a numpy scalar rounds to its own kind

    def times(self, phase: str) -> Number:
        """How often the term counts in a phase."""
        return self.presence.get(phase, 0)


@dataclass(frozen=True)
class GroupValues:
    """What one layer of a group keeps, slot by slot; the same on every stage."""

    terms: Mapping[str, Term]
    values: Values
    amounts: Mapping[str, Number]


def layer_values(case: Case, layout: Any) -> Mapping[Any, GroupValues]:
    """What a layer of each group keeps with one layout, or with columns of them."""
    base = Place(case, layout)
    found: dict[Any, GroupValues] = {}
    for group, _ in base.tables.groups:
        values = Values(Place(case, layout, 0, group))
        terms = select(choices(case, masked=group.masked) | group.choices)
        slots = (*phases.LAYER_SLOTS, *phases.WORKING_SLOTS, *phases.CHECKPOINT_SLOTS)
        wanted = {slot: terms[slot] for slot in slots if slot in terms}
        found[group] = GroupValues(wanted, values, {slot: whole_bytes(term(values)) for slot, term in wanted.items()})
    return found


def whole_bytes(amount: Number) -> Number:
    """The nearest whole byte, as an int for one case."""
    if isinstance(amount, (int, float)):
        return round(amount)
    import numpy as np  # noqa: PLC0415 - only columns come this far

    return np.round(amount)


def outer_lines(place: Place) -> Iterator[Line]:
    """The slots of a stage outside its layers that are alive at some instant."""
    terms = select(choices(place.case) | {"ffn_kind": "none"})
    values = Values(place)
    exact = place.case.policy.profile == "exact"
    one = isinstance(place.layout, Layout) and isinstance(place.stage, int)
    never = _never if one else _never_in_columns
    for slot, presence in (outer_presence(place) if exact else always_present(terms)).items():
        if slot in terms and not never(presence):
            yield Line(terms[slot], values, whole_bytes(terms[slot](values)), presence)


def _never(presence: Presence) -> bool:
    """Whether a slot counts at no instant."""
    return not any(presence.values())


def _never_in_columns(presence: Presence) -> bool:
    """Whether a slot counts at no instant of any layout or stage; instants that count alike share one column."""
    return all(nowhere(count) for count in {id(count): count for count in presence.values()}.values())


def layer_lines(place: Place, layers: Mapping[Any, GroupValues]) -> Iterator[Line]:
    """The slots of a stage's layers, group by group, and what recompute keeps of them. Counts are whole."""
    for group, sums in place.tables.groups:
        held = layers[group]
        for slot, presence in layer_presence(place, sums).items():
            if slot in held.terms:
                yield Line(held.terms[slot], held.values, held.amounts[slot], presence)
    yield from _checkpoint_lines(place, layers)


def _checkpoint_lines(place: Place, layers: Mapping[Any, GroupValues]) -> Iterator[Line]:
    """The kept inputs, once: every group's layers have inputs of the same size."""
    held = next(iter(layers.values()), None)
    if held is None:
        return
    for slot, alive in (("checkpoint.input", checkpoint_presence), ("checkpoint.selected", selected_presence)):
        if slot in held.terms:
            yield Line(held.terms[slot], held.values, held.amounts[slot], alive(place))


def reduces_on_own_stream(place: Place) -> Any:
    """Whether gradient shards come from another stream's pool than activations; a bool, or a column of them."""
    if place.case.training.framework not in ("fsdp2", "torchtitan"):
        return False
    return place.layout.data_parallel * place.layout.context_parallel > 1
