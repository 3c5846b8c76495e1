"""Every formula of time, and the one that fills each slot for a case."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from advisor.formula import Term
from advisor.rates import eight_bit_precision
from advisor.timing import compute, exchange, work
from advisor.types.case import Case

TERMS: tuple[Term, ...] = (*work.TERMS, *compute.TERMS, *exchange.TERMS)

#: Slot of a piece of work → the symbol that its value becomes: a token's, the same on every stage, and a stage's.
TOKEN_WORK: Mapping[str, str] = {
    "work.attention": "F_a",
    "work.up_projections": "F_u",
    "work.scores": "F_k",
    "work.dense": "F_f",
    "work.expert": "F_e",
    "work.shared": "F_s",
    "work.head": "F_v",
}
STAGE_WORK: Mapping[str, str] = {"work.adapters": "F_l", "work.stepped": "N_o"}

#: The parts of a step's time, by the names that answers and rules call them.
TIME_PARTS = tuple(dict.fromkeys(term.slot for term in TERMS if not term.slot.startswith("work.")))


def choices(case: Case) -> dict[str, str]:
    """What selects the formulas of a case, apart from its layout's degrees."""
    model, training = case.model, case.training
    fused = training.implementation == "fused" or training.compile
    return {
        "attention": model.attention.kind,
        "queries": "compressed" if model.attention.q_lora_rank else "direct",
        "ffn": "gated" if model.ffn is None or model.ffn.gated else "plain",
        "expert": "gated" if model.experts is None or model.experts.gated else "plain",
        "adapters": "on" if training.method in {"lora", "dora", "qlora"} else "off",
        "scores": "eager" if training.attention == "eager" else "flash",
        "kernels": "fused" if fused else "unfused",
        "matrices": "eight_bit" if eight_bit_precision(training.precision) else "sixteen_bit",
        "schedule": case.layout.pipeline_schedule,
        "context": case.layout.context_parallel_kind,
    }


def select(case: Case, *, moe: bool) -> Mapping[str, Term]:
    """The formula of each slot for a dense or an expert layer and what lies around it."""
    chosen = choices(case) | {"ffn_kind": "moe" if moe else "dense"}
    return _selected(tuple(chosen.items()))


@lru_cache(maxsize=256)
def _selected(items: tuple[tuple[str, str], ...]) -> Mapping[str, Term]:
    chosen = dict(items)
    return {term.slot: term for term in TERMS if term.applies(chosen)}
