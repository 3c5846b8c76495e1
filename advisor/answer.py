"""Breakdown → answer: verdict, band, terms with formula and numbers, stages, host, assumptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from advisor import certainty, phases
from advisor.between_steps import between_steps
from advisor.constraints.advice import advice
from advisor.constraints.legality import require_legal
from advisor.estimate import Breakdown, StageBreakdown, estimate
from advisor.formula import number_text
from advisor.lines import Line
from advisor.node_memory import host, host_assumptions, host_warnings
from advisor.placement import Place
from advisor.symbols import GLOSSARY
from advisor.timing import time_answer
from advisor.types.answers import (
    Activations,
    Binding,
    MemoryAnswer,
    NextCall,
    Parameters,
    PhaseValue,
    StageValue,
    SymbolValue,
    TermValue,
)
from advisor.types.case import Case, Layout
from advisor.types.host import Verdict
from advisor.units import format_bytes
from advisor.versions import versions

#: Frameworks that hold every state whole on each GPU.
WHOLE_STATES = ("single", "ddp")
EXPERT_STATES = ("weights.experts", "gradients.experts", "optimizer.experts")


def answer(case: Case) -> MemoryAnswer:
    """The full answer for one case.

    Raises:
        AdvisorError: ``illegal_layout`` when the framework refuses the layout.
    """
    require_legal(case)
    return describe(estimate(case))


def describe(breakdown: Breakdown) -> MemoryAnswer:
    """The answer that a breakdown gives, and the advice that concerns it."""
    computed = _computed(breakdown)
    said = advice(breakdown.case, computed)
    return computed.model_copy(update={"warnings": (*computed.warnings, *said)}) if said else computed


def _computed(breakdown: Breakdown) -> MemoryAnswer:
    case, binding = breakdown.case, breakdown.binding
    phase = binding.peak_phase
    lines = [line for line in binding.lines if line.at(phase)]
    band, reserved = certainty.band(breakdown), certainty.reserved_bytes(breakdown)
    full, fits = case.policy.detail == "full", reserved <= breakdown.usable_bytes
    node = host(breakdown)
    said = certainty.with_flips(breakdown, fits=fits) if full else case.assumptions
    return MemoryAnswer(
        verdict=verdict(breakdown),
        peak_bytes=breakdown.peak_bytes,
        peak_bytes_low=band.low,
        peak_bytes_high=band.high,
        reserved_bytes=reserved,
        usable_bytes=breakdown.usable_bytes,
        margin_bytes=breakdown.usable_bytes - reserved,
        evidence=certainty.evidence(case),
        binding=Binding(
            stage=binding.place.stage, phase=phase, term=max(lines, key=lambda line: line.at(phase)).term.name
        ),
        terms=term_values(lines, phase),
        symbols=symbol_values(lines) if full else (),
        activations=_activations(binding, phase),
        stages=_stages(breakdown),
        phases=_phases(binding),
        parameters=_parameters(case, binding),
        host=node,
        time=time_answer(case, breakdown.places),
        layout=case.layout,
        framework=case.training.framework,
        assumptions=(*said, *host_assumptions(breakdown, node)),
        warnings=(
            *host_warnings(case, node),
            *case.warnings,
            *certainty.measured_warnings(breakdown),
            *_undivided_experts(binding),
        ),
        questions=certainty.questions(case),
        next_calls=_next_calls(case, fits=fits and node.verdict != "does_not_fit"),
        versions=versions(),
    )


def _undivided_experts(stage: StageBreakdown) -> Iterator[str]:
    """A ZeRO stage that finds nothing to divide: every rank of the stage has experts of its own."""
    layout, place = stage.place.layout, stage.place
    if not (
        layout.zero_stage and layout.expert_parallel > 1 and place.experts_trained and place.expert_data_ranks == 1
    ):
        return
    held = stage.held([slot for slot in stage.lines_by_slot if slot in EXPERT_STATES], phases.OPTIMIZER)
    yield (
        f"zero_stage={layout.zero_stage} divides nothing of the routed experts' {format_bytes(held)} of states: "
        f"{place.world} GPUs / (pipeline {layout.pipeline_parallel} x expert {layout.expert_parallel} x expert tensor "
        f"{layout.expert_tensor_parallel}) leave each expert on one rank"
    )


def verdict(breakdown: Breakdown) -> Verdict:
    """Reserved memory against usable, graded: see docs/contract.md."""
    case = breakdown.case
    reserved, usable = certainty.reserved_bytes(breakdown), breakdown.usable_bytes
    allowed = usable * (1 - case.policy.headroom)
    if reserved * (1 + certainty.band(breakdown).excess) <= allowed:
        return "comfortable"
    if reserved <= allowed:
        return "fits"
    return "tight" if certainty.least_bytes(breakdown) <= usable else "does_not_fit"


def term_values(lines: Iterable[Line], phase: str) -> tuple[TermValue, ...]:
    """One row a term, largest first; equal terms of several layer groups are one row."""
    merged: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        merged.setdefault((line.term.name, line.term.substituted(line.values)), []).append(line)
    rows = [_term_value(same, substituted, phase) for (_, substituted), same in merged.items()]
    return tuple(sorted(rows, key=lambda row: -row.bytes))


def _term_value(lines: list[Line], substituted: str, phase: str) -> TermValue:
    term = lines[0].term
    count = sum([line.times(phase) for line in lines])
    several = count != 1
    alive = {name for line in lines for name, times in line.presence.items() if times}
    return TermValue(
        name=term.name,
        slot=term.slot,
        bytes=sum([line.at(phase) for line in lines]),
        formula=f"n · ({term.formula})" if several else term.formula,
        substituted=f"{number_text(count)} · ({substituted})" if several else substituted,
        symbols=term.symbols,
        source=term.source,
        evidence=term.evidence,
        phases=tuple([name for name in phases.PHASES if name in alive]),
    )


def symbol_values(lines: Iterable[Line]) -> tuple[SymbolValue, ...]:
    """The legend: each symbol that the shown terms use, once."""
    found: dict[str, SymbolValue] = {}
    for line in lines:
        for name in line.term.symbols:
            symbol = GLOSSARY[name]
            value = float(line.values[name])
            found.setdefault(name, SymbolValue(symbol=name, meaning=symbol.meaning, unit=symbol.unit, value=value))
    return tuple(found[name] for name in GLOSSARY if name in found)


_LOSS_SLOTS = ("loss.kept", "loss.forward", "loss.backward", "loss.softcap", "loss.held_logits")
_SAVED_SLOTS = (*phases.LAYER_SLOTS, *phases.CHECKPOINT_SLOTS, "head.norm", "head.input")


def _activations(stage: StageBreakdown, phase: str) -> Activations:
    of_layers = [line.amount for slot in phases.LAYER_SLOTS for line in stage.lines_by_slot.get(slot, ())]
    return Activations(
        saved_bytes=stage.held(_SAVED_SLOTS, phases.FORWARD),
        loss_bytes=max(stage.held(_LOSS_SLOTS, phases.FORWARD), stage.held(_LOSS_SLOTS, phases.LOSS)),
        working_set_bytes=stage.held((*phases.WORKING_SLOTS, "working.head"), phase),
        per_layer_bytes=round(sum(of_layers)),
    )


def _phases(stage: StageBreakdown) -> tuple[PhaseValue, ...]:
    named = {**stage.by_phase, **between_steps(stage)}
    return tuple(PhaseValue(phase=name, bytes=amount) for name, amount in named.items())


def _stages(breakdown: Breakdown) -> tuple[StageValue, ...]:
    return tuple(
        StageValue(
            stage=row.stage,
            layers=row.layers,
            in_flight=row.in_flight,
            parameters=row.parameters,
            peak_bytes=row.peak_bytes,
            phase=row.peak_phase,
        )
        for row in breakdown.rows
    )


def _parameters(case: Case, binding: StageBreakdown) -> Parameters:
    trained = case.adapter_parameters or trained_parameters(binding.place)
    return Parameters(
        total=case.parameters.total + case.adapter_parameters,
        trainable=trained,
        active=case.parameters.active + case.adapter_parameters,
        per_rank=binding.parameters,
    )


def trained_parameters(place: Place) -> int:
    """Parameters that receive a gradient, whole model, of which this is one rank."""
    if place.layout.pipeline_parallel * place.layout.tensor_parallel > 1:
        place = Place(place.case, Layout(), 0)  # one rank holds the whole model
    layers = place.divided_trained + place.replicated_trained + place.experts_trained
    return int(layers + place.head_trained + place.embedding_trained)


def _next_calls(case: Case, *, fits: bool) -> tuple[NextCall, ...]:
    if case.arguments is None:
        return ()
    given = case.arguments.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    whole = not fits and case.training.framework in WHOLE_STATES  # no layout of such a framework needs less
    left_open = (*Layout.model_fields, "detail", "measured_peak_gib", *(("framework",) if whole else ()))
    arguments = {name: value for name, value in given.items() if name not in left_open}
    why = "find the layout to run" if fits else "find a layout that fits"
    return (NextCall(tool="recommend_setup", arguments=arguments, why=why),)


def hardware_text(case: Case) -> str:
    """The hardware as an argument."""
    return f"{case.cluster.nodes}x{case.cluster.gpus_per_node} {case.cluster.device.name}"
