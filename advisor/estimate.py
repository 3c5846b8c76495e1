"""Case → breakdown: select the terms, evaluate them per stage and phase, take the peak on the worst rank."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from advisor import phases
from advisor.lines import GroupValues, Line, layer_lines, layer_values, outer_lines, reduces_on_own_stream
from advisor.placement import Place
from advisor.types.case import Case

#: Pipelines of more stages are first looked over as columns, a row a stage; fewer stages are quicker one by one.
FEW_STAGES = 2


@dataclass(frozen=True)
class StageRow:
    """One pipeline stage in a few figures; bytes of one rank, parameters before ZeRO divides them."""

    stage: int
    layers: int
    in_flight: float
    parameters: int
    peak_bytes: int
    pooled_bytes: int
    peak_phase: str
    host_bytes: int
    nvme_bytes: int


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

    @cached_property
    def lines_by_slot(self) -> Mapping[str, list[Line]]:
        """The lines of each slot."""
        slots: dict[str, list[Line]] = {}
        for line in self.lines:
            slots.setdefault(line.term.slot, []).append(line)
        return slots

    def held(self, slots: Iterable[str], phase: str) -> int:
        """Bytes of these slots in a phase."""
        return sum([line.at(phase) for slot in slots for line in self.lines_by_slot.get(slot, ())])

    @property
    def by_phase(self) -> Mapping[str, int]:
        """Bytes alive in each phase."""
        return {phase: self.totals[phase] for phase in phases.PHASES}

    @cached_property
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
        held = {phase: self.held(phases.GRADIENT_SHARDS, phase) for phase in phases.PHASES}
        return max(self.totals[phase] - held[phase] for phase in phases.PHASES) + max(held.values())

    @cached_property
    def parameters(self) -> int:
        """Parameters that one rank of the stage holds before ZeRO divides them."""
        return int(rank_parameters(self.place))

    @cached_property
    def row(self) -> StageRow:
        """The stage in a few figures."""
        place, totals = self.place, self.totals
        return StageRow(
            stage=int(place.stage),
            layers=int(place.layers),
            in_flight=float(place.in_flight),
            parameters=self.parameters,
            peak_bytes=self.peak_bytes,
            pooled_bytes=self.pooled_bytes,
            peak_phase=self.peak_phase,
            host_bytes=totals[phases.HOST],
            nvme_bytes=totals[phases.NVME],
        )


@dataclass(frozen=True)
class Breakdown:
    """Memory of one case: every stage in a few figures, and line by line the one that binds, or any that is asked for.

    Attributes:
        case: the job.
        layers: what a layer of each group keeps, the same on every stage.
    """

    case: Case
    layers: Mapping[Any, GroupValues]
    _stages: dict[int, StageBreakdown] = field(default_factory=dict, repr=False)

    def stage(self, index: int) -> StageBreakdown:
        """One stage, line by line."""
        if index not in self._stages:
            place = Place(self.case, self.case.layout, index)
            self._stages[index] = StageBreakdown(place, (*outer_lines(place), *layer_lines(place, self.layers)))
        return self._stages[index]

    @property
    def places(self) -> Mapping[int, Place]:
        """The stages that were looked at line by line."""
        return {index: stage.place for index, stage in self._stages.items()}

    @property
    def stages(self) -> tuple[StageBreakdown, ...]:
        """Every stage, line by line."""
        return tuple(self.stage(index) for index in range(self.case.layout.pipeline_parallel))

    @cached_property
    def rows(self) -> tuple[StageRow, ...]:
        """Every stage in a few figures."""
        if self.case.layout.pipeline_parallel <= FEW_STAGES:
            return tuple(stage.row for stage in self.stages)
        return _rows_of_columns(self)

    @cached_property
    def binding(self) -> StageBreakdown:
        """The stage with the highest peak; the earlier one of equals."""
        return self.stage(max(self.rows, key=lambda row: row.peak_bytes).stage)

    @cached_property
    def peak_bytes(self) -> int:
        """Expected peak of allocated memory on the worst rank."""
        return self.binding.peak_bytes

    @cached_property
    def pooled_bytes(self) -> int:
        """Peak of the allocator's pools together."""
        return max(row.pooled_bytes for row in self.rows)

    @property
    def reserved_bytes(self) -> int:
        """Expected peak that the caching allocator holds."""
        return round(self.pooled_bytes * (1 + self.case.training.fragmentation))

    def node_bytes(self, where: str) -> int:
        """Bytes one node keeps in CPU memory (``host``) or on NVMe (``nvme``), judged by its heaviest rank."""
        heaviest = max(int(getattr(row, f"{where}_bytes")) for row in self.rows)
        return heaviest * self.case.cluster.gpus_per_node

    @cached_property
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


def rank_parameters(place: Place) -> Any:
    """Parameters that one rank of a stage holds before ZeRO divides them; of one stage or of a column of them."""
    layout = place.layout
    experts = place.experts / (layout.expert_parallel * layout.expert_tensor_parallel)
    adapters = place.case.adapter_parameters * place.layers / place.model.layers
    return place.divided / layout.tensor_parallel + place.replicated + experts + adapters


def _rows_of_columns(breakdown: Breakdown) -> tuple[StageRow, ...]:
    import numpy as np  # noqa: PLC0415 - an estimate of few stages needs no numpy

    from advisor.stage_figures import stage_figures  # noqa: PLC0415

    case, count = breakdown.case, breakdown.case.layout.pipeline_parallel
    place = Place(case, case.layout, np.arange(count))
    found = stage_figures(place, breakdown.layers, count, instants=True)
    columns = {
        "stage": place.stage,
        "layers": place.layers,
        "parameters": np.floor(rank_parameters(place)),
        "peak_bytes": found.peak,
        "pooled_bytes": found.pooled,
        "host_bytes": found.host,
        "nvme_bytes": found.nvme,
    }
    whole = [[int(value) for value in np.broadcast_to(column, count).tolist()] for column in columns.values()]
    in_flight = np.broadcast_to(place.in_flight, count).astype(np.float64).tolist()
    peaks = [phases.PHASES[index] for index in found.instant.tolist()]
    return tuple(
        StageRow(**dict(zip(columns, row, strict=True)), in_flight=alive, peak_phase=phase)
        for *row, alive, phase in zip(*whole, in_flight, peaks, strict=True)
    )


def usable_bytes(case: Case) -> int:
    """Bytes that PyTorch can take on one GPU: the driver's total less context and communicators."""
    outside = case.cluster.device.context_bytes
    if case.cluster.gpus > 1:
        outside += case.training.communicator_bytes
    return max(case.cluster.driver_bytes - outside, 0)


def estimate(case: Case) -> Breakdown:
    """Every stage's memory, term by term."""
    return Breakdown(case, layer_values(case, case.layout))
