"""One pipeline stage's step: what it computes, exchanges and waits for; the same for a layout and for columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from advisor import phases
from advisor.choices import choices as memory_choices
from advisor.columnwise import Number, at_least, at_most, choose
from advisor.layers import even_as_possible
from advisor.placement import Place
from advisor.presence import offloads
from advisor.recompute import keeps, recomputed_layers
from advisor.symbols import Values
from advisor.terms import select as select_memory
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
from advisor.timing.terms import WORK, select
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


def stage_time(place: Place, assumed: Mapping[str, Number]) -> StageTime:
    """What one stage's step is made of; ``assumed`` replaces values of the glossary."""
    values = work_values(place, assumed)
    terms = select(place.case, moe=False)
    by_kind: dict[str, list[Line]] = {}
    kinds = (False, True) if place.model.experts else (False,)
    found = [entry for moe in kinds for entry in layer_lines(place, values, moe=moe)]
    for kind, item in (*found, *outer_lines(place, values)):
        by_kind.setdefault(kind, []).append(item)
    launched, attention, context, routed = (by_kind.get(kind, []) for kind in (LAUNCH, ATTENTION, CONTEXT, ROUTED))
    computing = [*by_kind[COMPUTE], *attention]
    busy = total(computing)
    lines = [*computing, *by_kind[EXCHANGE]]
    lines.append(line(terms["launches.exposed"], values, t_h=total(launched), t_g=busy))
    lines.append(line(terms["exchange.context"], values, t_x=total(context), t_w=total(attention)))
    lines.append(line(terms["exchange.experts"], values, t_x=total(routed), t_g=busy))
    lines.append(line(terms["bubble"], values, t_b=total(lines)))
    once, hidden = _once_a_step(place, values, busy)
    return StageTime(place, (*lines, *once), (*launched, *context, *routed, *hidden))


def work_values(place: Place, assumed: Mapping[str, Number]) -> Values:
    """The glossary at a place, with a token's work in each part of a layer."""
    values = Values(place)
    values.update(assumed)
    terms = select(place.case, moe=False)
    for slot, symbol in WORK.items():
        if slot in terms:
            values[symbol] = terms[slot](values)
    return values


def _once_a_step(place: Place, values: Values, busy: Number) -> tuple[list[Line], list[Line]]:
    """Data-parallel exchange, the optimizer and offload: what waits, and what is hidden behind computing."""
    terms, m, layout = select(place.case, moe=False), values["m"], place.layout
    gathers = choose(layout.zero_stage >= place.case.training.recipe.weights_divided_from, 1, 0)
    every = choose(layout.zero_stage >= place.case.training.recipe.gradients_divided_from, m, 1)
    sent = line(terms["exchange.gather_sent"], values, n_p=gathers * m)
    reduced = line(terms["exchange.reduce_sent"], values, n_p=(1 - gathers) * every)
    on_nvme, on_host = offloads(place, "optimizer", "nvme"), offloads(place, "optimizer")
    waits = [
        line(terms["exchange.gather"], values, t_x=sent.seconds, t_g=busy),
        line(terms["exchange.reduce"], values, t_x=reduced.seconds, t_g=busy),
        line(terms["exchange.replicas"], values, n_p=gathers),
        line(terms["optimizer"], values),
        line(terms["offload.optimizer"], values, n_p=on_host),
        line(terms["offload.nvme"], values, n_p=on_nvme),
        line(terms["offload.parameters"], values, n_p=offloads(place, "parameters") * m),
    ]
    hidden = [sent, reduced]
    if _any(offloads(place, "activations")):
        kept = line(terms["offload.activations_sent"], values, **_kept(place, values))
        hidden.append(kept)
        waits.append(line(terms["offload.activations"], values, t_x=kept.seconds, t_g=busy))
    return waits, hidden


def _kept(place: Place, values: Values) -> dict[str, Number]:
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


def candidate_stages(case: Case, layout: Any) -> Iterator[Number]:
    """Stages among which the slowest lies: the first, the first of the fuller ones, the first that routes, the last."""
    given = getattr(layout, "stage_layers", ())
    if given and tuple(given) != even_as_possible(case.model.layers, len(given)):
        yield from range(len(given))
        return
    last = layout.pipeline_parallel - 1
    yield last * 0
    fuller = at_most(last - case.model.layers % layout.pipeline_parallel, last)
    yield fuller
    if case.model.moe_layers and case.model.moe_layers[0] > 0:
        per_stage = at_least(case.model.layers // layout.pipeline_parallel, 1)
        routing = at_most(-(-case.model.moe_layers[0] // per_stage), last)
        yield routing
        yield at_least(routing, fuller)
    yield last
