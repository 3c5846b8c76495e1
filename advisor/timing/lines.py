"""The formulas of one pipeline stage's layers, each with how many passes it counts in a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from advisor.columnwise import Number, choose
from advisor.formula import Term
from advisor.placement import Place
from advisor.recompute import policy_is, selects_operators
from advisor.timing.job import Job
from advisor.timing.passes import Passes, passes

#: What a line is: computing, attention's kernel, launching, and exchanges by what can hide them.
COMPUTE, ATTENTION, LAUNCH = "compute", "attention", "launch"
EXCHANGE, CONTEXT, ROUTED = "exchange", "context", "routed"

Counted = tuple[str, str, Number]


class Line(NamedTuple):
    """One formula on one rank over a step.

    Attributes:
        term: the formula.
        values: the glossary on its stage.
        own: values of its own over those, such as its passes.
        seconds: what it takes.
    """

    term: Term
    values: Mapping[str, Number]
    own: Mapping[str, Number]
    seconds: Number

    @property
    def substituted(self) -> str:
        """The formula with its numbers."""
        return self.term.substituted(_given(self.term, self.values, self.own))


def line(term: Term, values: Mapping[str, Number], **own: Number) -> Line:
    """A formula with values of its own over those of a stage."""
    return Line(term, values, own, term.function(**_given(term, values, own)))


def _given(term: Term, values: Mapping[str, Number], own: Mapping[str, Number]) -> dict[str, Number]:
    return {symbol: own[symbol] if symbol in own else values[symbol] for symbol in term.symbols}


def layer_lines(place: Place, job: Job, *, moe: bool) -> Iterator[tuple[str, Line]]:
    """What the stage's layers of one kind cost in a step, each with what it is."""
    terms, count, m = job.expert_terms if moe else job.terms, passes(place, moe=moe), job.values["m"]
    parts = _experts if moe else _feed_forward
    for kind, slot, number in (*_attention(place, job, count), *parts(place, job, count)):
        if slot in terms and not _nothing(number):
            term, n_p = terms[slot], number * m
            yield kind, Line(term, job.values, {"n_p": n_p}, n_p * job.one_pass(term))


def _attention(place: Place, job: Job, count: Passes) -> Iterator[Counted]:
    core = _dropped(job, count, "attention.core")
    yield COMPUTE, "matrices.attention", _matrices(place, count)
    yield COMPUTE, "matrices.up_projections", _dropped(job, count, "attention.mla_up")
    yield ATTENTION, "attention.scores", count.scores - _kept_operators(place) * count.again + core
    yield COMPUTE, "elementwise.scores", count.twice + core
    yield COMPUTE, "elementwise.casts", count.once
    yield EXCHANGE, "exchange.tensor", count.once
    yield CONTEXT, "exchange.context_sent", count.twice


def _feed_forward(place: Place, job: Job, count: Passes) -> Iterator[Counted]:
    yield COMPUTE, "matrices.dense", _matrices(place, count) + _dropped(job, count, "ffn.up")
    yield COMPUTE, "elementwise.dense", count.twice + _dropped(job, count, "ffn.input") / 2
    yield LAUNCH, "launches.dense", count.twice


def _experts(place: Place, job: Job, count: Passes) -> Iterator[Counted]:
    again = _dropped(job, count, "moe.up")
    yield COMPUTE, "matrices.experts", _matrices(place, count) + again
    yield COMPUTE, "matrices.shared", _matrices(place, count) + again
    yield COMPUTE, "elementwise.experts", count.twice + _dropped(job, count, "moe.input") / 2
    yield LAUNCH, "launches.experts", count.twice
    yield ROUTED, "exchange.experts_sent", count.once + again


def _dropped(job: Job, count: Passes, slot: str) -> Number:
    """Layers that make this slot's tensors again, apart from those that are recomputed as a whole."""
    again = job.made_again(slot)
    return 0 if _nothing(again) else count.partly * again


def _kept_operators(place: Place) -> Number:
    """1 where recompute keeps the results of chosen operators: attention's, and every second matrix's."""
    return choose(policy_is(place, "selective"), 1, 0) if selects_operators(place.case) else 0


def _matrices(place: Place, count: Passes) -> Number:
    return count.matrices - _kept_operators(place) * count.again / 2


def outer_lines(place: Place, job: Job, values: Mapping[str, Number]) -> Iterator[tuple[str, Line]]:
    """Head and loss, once more for each predictor of further tokens; adapters, and what passes between stages."""
    terms, m = job.terms, values["m"]
    heads = (place.is_last + place.predictors) * m
    yield COMPUTE, line(terms["matrices.head"], values, n_p=heads * (2 + place.trained.head))
    yield COMPUTE, line(terms["elementwise.loss"], values, n_p=heads * 2)
    yield EXCHANGE, line(terms["exchange.pipeline"], values, n_p=2 * m)
    if "matrices.adapters" in terms:
        yield COMPUTE, line(terms["matrices.adapters"], values, n_p=3 * m)


def _nothing(number: Any) -> bool:
    return isinstance(number, (int, float)) and number == 0
