"""One pipeline stage's step: what it computes, exchanges and waits for; the same for a layout and for columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor import phases
from advisor.choices import choices as memory_choices
from advisor.columnwise import Number, at_least, choose
from advisor.formula import Term
from advisor.layers import longest_stages
from advisor.offload import offloads
from advisor.placement import Place
from advisor.recompute import keeps, recomputed_layers
from advisor.symbols import Values
from advisor.terms import select as select_memory
from advisor.timing.job import Job, StageValues
from advisor.timing.lines import (
    ATTENTION,
    COMPUTE,
    CONTEXT,
    EXCHANGE,
    LAUNCH,
    ROUTED,
    Line,
    layer_lines,
    line,
    outer_lines,
)
from advisor.types.case import Case


@dataclass(frozen=True)
class StageTime:
    """One stage's step: lines that add up to it, and those that computing hides."""

    place: Place
    lines: tuple[Line, ...]
    hidden: tuple[Line, ...]

    @cached_property
    def seconds(self) -> Number:
        """The whole step."""
        return total(self.lines)


def total(lines: Iterable[Line]) -> Number:
    """Seconds of several formulas together."""
    return sum(item.seconds for item in lines)


def stage_time(job: Job, stage: int) -> StageTime:
    """What one stage's step is made of."""
    place = job.place(stage)
    values = StageValues(job, place)
    terms = job.terms
    by_kind: dict[str, list[Line]] = {}
    kinds = (False, True) if place.model.experts else (False,)
    found = [entry for moe in kinds for entry in layer_lines(place, job, moe=moe)]
    for kind, item in (*found, *outer_lines(place, job, values)):
        by_kind.setdefault(kind, []).append(item)
    launched, attention, context, routed = (by_kind.get(kind, []) for kind in (LAUNCH, ATTENTION, CONTEXT, ROUTED))
    computing = [*by_kind[COMPUTE], *attention]
    busy = total(computing)
    lines = [*computing, *by_kind[EXCHANGE]]
    lines.append(line(terms["launches.exposed"], values, t_h=total(launched), t_g=busy))
    lines.append(line(terms["exchange.context"], values, t_x=total(context), t_w=total(attention)))
    lines.append(line(terms["exchange.experts"], values, t_x=total(routed), t_g=busy))
    lines.append(line(terms["bubble"], values, t_b=total(lines)))
    once, hidden = _once_a_step(place, terms, values, busy)
    return StageTime(place, (*lines, *once), (*launched, *context, *routed, *hidden))


def _once_a_step(
    place: Place, terms: Mapping[str, Term], values: StageValues, busy: Number
) -> tuple[list[Line], list[Line]]:
    """Data-parallel exchange, the optimizer and offload: what is waited for, and what computing hides."""
    gathers = choose(place.layout.zero_stage >= place.case.training.recipe.weights_divided_from, 1, 0)
    waits, hidden = [line(terms["optimizer"], values)], []
    if _any(gathers):
        scatters = 1 if place.case.training.gradient_sync == "last" else values["m"]
        gathered = line(terms["exchange.gather_sent"], values, n_p=gathers * values["m"])
        scattered = line(terms["exchange.scatter_sent"], values, n_p=gathers * scatters)
        hidden += [gathered, scattered]
        waits.append(line(terms["exchange.gather"], values, t_x=gathered.seconds + scattered.seconds, t_g=busy))
        waits.append(line(terms["exchange.replicas"], values, n_p=gathers))
    if _any(1 - gathers):
        reductions = choose(
            place.layout.zero_stage >= place.case.training.recipe.gradients_divided_from, values["m"], 1
        )
        reduced = line(terms["exchange.reduce_sent"], values, n_p=(1 - gathers) * reductions)
        hidden.append(reduced)
        waits.append(line(terms["exchange.reduce"], values, t_x=reduced.seconds, t_g=busy))
    offloaded, moved = _offload(place, terms, values, busy)
    return [*waits, *offloaded], [*hidden, *moved]


def _offload(
    place: Place, terms: Mapping[str, Term], values: StageValues, busy: Number
) -> tuple[list[Line], list[Line]]:
    """What is moved off the GPU and back; none where nothing is."""
    waits, hidden = [], []
    times = {
        "offload.optimizer": offloads(place, "optimizer"),
        "offload.nvme": offloads(place, "optimizer", "nvme"),
        "offload.parameters": offloads(place, "parameters") * values["m"],
    }
    waits += [line(terms[slot], values, n_p=number) for slot, number in times.items() if _any(number)]
    if _any(offloads(place, "activations")):
        moved = line(terms["offload.activations_sent"], values, **_kept(place, values))
        hidden.append(moved)
        waits.append(line(terms["offload.activations"], values, t_x=moved.seconds, t_g=busy))
    return waits, hidden


def _kept(place: Place, values: StageValues) -> dict[str, Number]:
    """Passes that keep something, and the bytes a layer of the stage keeps on average."""
    again = recomputed_layers(place)
    bytes_kept: Number = again * values["T"] * values["h"] * values["w"]
    for group, sums in place.tables.groups:
        chosen = select_memory(memory_choices(place.case, masked=group.masked) | group.choices)
        layer = Values(Place(place.case, place.layout, place.stage, group))
        share = place.span(sums) / at_least(place.layers, 1) * (place.layers - again)
        for slot in phases.LAYER_SLOTS:
            if slot in chosen:
                bytes_kept = bytes_kept + share * keeps(place, slot) * chosen[slot](layer)
    moved = offloads(place, "activations")
    return {"n_p": place.layers * values["m"] * moved, "B_l": bytes_kept / at_least(place.layers, 1)}


def _any(flag: Any) -> bool:
    return bool(flag) if isinstance(flag, (int, float)) else bool(flag.any())


def slowest_stage(job: Job) -> StageTime:
    """The stage that a step of one layout waits for."""
    found = (stage_time(job, stage) for stage in candidate_stages(job.case, job.layout))
    return max(found, key=lambda stage: stage.seconds)


def candidate_stages(case: Case, layout: Any) -> tuple[int, ...]:
    """Stages among which the slowest lies."""
    return longest_stages(Place(case, layout).starts, case.model.moe_layers)
