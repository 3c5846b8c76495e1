"""Case → breakdown: select the terms, evaluate them per stage and phase, take the peak on the worst rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor import phases
from advisor.choices import choices
from advisor.columnwise import Number
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
from advisor.types.case import Case


@dataclass(frozen=True)
class Line:
    """One slot on one rank: the term that fills it, its value, and how often it counts in each phase."""

    term: Term
    values: Values
    amount: Number
    presence: Presence

    def at(self, phase: str) -> int:
        """Whole bytes in a phase."""
        return int(round(self.amount * self.presence.get(phase, 0)))  # noqa: RUF046 - a numpy scalar rounds to its own kind

    def count(self, phase: str) -> Number:
        """How often the term counts in a phase."""
        return self.presence.get(phase, 0)


@dataclass(frozen=True)
class StageBreakdown:
    """Memory of one pipeline stage, by phase."""

    place: Place
    lines: tuple[Line, ...]

    @cached_property
    def totals(self) -> Mapping[str, int]:
        """Bytes alive in each phase, and those that rest off the GPU."""
        alike: dict[int, list[Line]] = {}
        for line in self.lines:
            alike.setdefault(id(line.presence), []).append(line)
        totals = dict.fromkeys((*phases.PHASES, phases.HOST, phases.NVME), 0)
        for lines in alike.values():
            whole = sum([line.amount for line in lines])
            for phase, count in lines[0].presence.items():
                if count:
                    exact = isinstance(count, int)  # whole lines times a whole count need no rounding line by line
                    totals[phase] += whole * count if exact else sum(line.at(phase) for line in lines)
        return totals

    @property
    def by_phase(self) -> Mapping[str, int]:
        """Bytes alive in each phase."""
        return {phase: self.totals[phase] for phase in phases.PHASES}

    @property
    def peak_phase(self) -> str:
        """The phase with the most bytes; the earlier one of equals."""
        return max(phases.PHASES, key=self.totals.__getitem__)

    @property
    def peak_bytes(self) -> int:
        """Bytes at the peak."""
        return self.totals[self.peak_phase]

    @cached_property
    def pooled_bytes(self) -> int:
        """What the allocator's pools add up to: FSDP makes gradient shards on the stream that reduces them.

        A stream's free blocks serve that stream alone, so the two pools' peaks add up though they come at different
        instants (PyTorch's ``foreach_reduce``).
        """
        if not reduces_on_own_stream(self.place):
            return self.peak_bytes
        shards = [line for line in self.lines if line.term.slot in phases.GRADIENT_SHARDS]
        held = {phase: sum(line.at(phase) for line in shards) for phase in phases.PHASES}
        return max(self.totals[phase] - held[phase] for phase in phases.PHASES) + max(held.values())

    @property
    def parameters(self) -> int:
        """Parameters that one rank of the stage holds before ZeRO divides them."""
        place, layout = self.place, self.place.layout
        experts = place.experts / (layout.expert_parallel * layout.expert_tensor_parallel)
        adapters = self.place.case.adapter_parameters * place.layers / place.model.layers
        return int(place.divided / layout.tensor_parallel + place.replicated + experts + adapters)


@dataclass(frozen=True)
class Breakdown:
    """Memory of every stage of one case."""

    case: Case
    stages: tuple[StageBreakdown, ...]

    @cached_property
    def binding(self) -> StageBreakdown:
        """The stage with the highest peak; the earlier one of equals."""
        return max(self.stages, key=lambda stage: stage.peak_bytes)

    @property
    def peak_bytes(self) -> int:
        """Expected peak of allocated memory on the worst rank."""
        return self.binding.peak_bytes

    @property
    def pooled_bytes(self) -> int:
        """Peak of the allocator's pools together."""
        return max(stage.pooled_bytes for stage in self.stages)

    @property
    def reserved_bytes(self) -> int:
        """Expected peak that the caching allocator holds."""
        return round(self.pooled_bytes * (1 + self.case.training.fragmentation))

    def node_bytes(self, where: str) -> int:
        """Bytes one node keeps off its GPUs, judged by its heaviest rank."""
        return max(stage.totals[where] for stage in self.stages) * self.case.cluster.gpus_per_node

    @property
    def usable_bytes(self) -> int:
        """What the driver reports, less what lives outside PyTorch."""
        return usable_bytes(self.case)

    @cached_property
    def by_slot(self) -> Mapping[str, int]:
        """Bytes of each slot at the peak, largest first."""
        phase = self.binding.peak_phase
        totals: dict[str, int] = {}
        for line in self.binding.lines:
            totals[line.term.slot] = totals.get(line.term.slot, 0) + line.at(phase)
        return dict(sorted(((s, n) for s, n in totals.items() if n), key=lambda item: -item[1]))


def reduces_on_own_stream(place: Place) -> Any:
    """Whether gradient shards come from another stream's pool than activations; a bool, or a column of them."""
    if place.case.training.framework not in ("fsdp2", "torchtitan"):
        return False
    return place.layout.data_parallel * place.layout.context_parallel > 1


def usable_bytes(case: Case) -> int:
    """Bytes that PyTorch can take on one GPU: the driver's total less context and communicators."""
    outside = case.cluster.device.context_bytes
    if case.cluster.gpus > 1:
        outside += case.training.communicator_bytes
    return max(case.cluster.driver_bytes - outside, 0)


def estimate(case: Case) -> Breakdown:
    """Every stage's memory, term by term."""
    shared = layer_values(case, case.layout)
    stages = tuple(
        StageBreakdown(place, (*outer_lines(place), *layer_lines(place, shared)))
        for place in (Place(case, case.layout, stage) for stage in range(case.layout.pipeline_parallel))
    )
    return Breakdown(case, stages)


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
    """The slots of a stage outside its layers."""
    terms = select(choices(place.case) | {"ffn_kind": "none"})
    values = Values(place)
    exact = place.case.policy.profile == "exact"
    for slot, presence in (outer_presence(place) if exact else always_present(terms)).items():
        if slot in terms:
            yield Line(terms[slot], values, whole_bytes(terms[slot](values)), presence)


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
