"""The physics as a whole: every term explains itself, has bytes, and fills its slot alone."""

import itertools
import re
from dataclasses import fields
from typing import get_args

import numpy as np
import pytest

from advisor import estimate, node_instants, phases, presence, symbols
from advisor.judge import judge
from advisor.placement import Place
from advisor.symbols import GLOSSARY, Values
from advisor.terms import SLOTS, TERMS, select
from advisor.types import arguments
from advisor.types.columns import OFFLOAD_TARGETS, RECOMPUTE_POLICIES, Columns
from tests.cases import KINDS, case
from tests.test_formula import evaluate


@pytest.mark.parametrize("kind", KINDS)
def test_substituted_text_evaluates_to_the_bytes_shown(kind):
    for stage in estimate.estimate(case(**KINDS[kind])).stages[:2]:
        for line in stage.lines:
            assert round(evaluate(line.term.substituted(line.values))) == pytest.approx(line.amount, abs=1, rel=1e-9)


def test_no_two_symbols_share_a_letter():
    assert len(symbols._ALL) == len(GLOSSARY)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_reads_as_an_equation_of_its_own_symbols(term):
    for symbol in term.symbols:
        assert symbol in re.split(r"[ ();]+", term.formula)


class Dimension:
    """Bytes and parameters, as exponents; counts have none."""

    def __init__(self, size, power=0, params=0):
        self.size, self.power, self.params = size, power, params

    @staticmethod
    def of(value):
        return value if isinstance(value, Dimension) else Dimension(value)

    def _same(self, other):
        other = Dimension.of(other)
        if (self.power, self.params) != (other.power, other.params) and 0 not in (self.size, other.size):
            raise AssertionError(f"adds B^{self.power} param^{self.params} to B^{other.power} param^{other.params}")
        return self if self.size else other

    def __add__(self, other):
        return self._same(other)

    __radd__ = __sub__ = __rsub__ = __add__

    def __ge__(self, other):
        return bool(self._same(Dimension.of(other)))

    def __mul__(self, other):
        other = Dimension.of(other)
        return Dimension(1, self.power + other.power, self.params + other.params)

    __rmul__ = __mul__

    def __truediv__(self, other):
        other = Dimension.of(other)
        return Dimension(1, self.power - other.power, self.params - other.params)

    def __rtruediv__(self, other):
        return Dimension.of(other) / self


UNITS = {"1": (0, 0), "B": (1, 0), "param": (0, 1), "B/param": (1, -1)}


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_every_term_yields_bytes_from_the_units_of_its_symbols(term):
    values = {name: Dimension(1, *UNITS[GLOSSARY[name].unit]) for name in term.symbols}
    result = term(values)
    assert (result.power, result.params) == (1, 0)


CHOICES = {
    "base": ("plain", "quantized"),
    "cast": ("none", "autocast"),
    "sync": ("every", "last"),
    "step": ("by_tensor", "foreach"),
    "steps": ("at_once", "by_group"),
    "stepped": ("as_stepped", "recast"),
    "adapters": ("off", "on"),
    "norm": ("rmsnorm", "gemma_rmsnorm", "layernorm"),
    "implementation": get_args(arguments.Implementation),
    "residual_dropout": ("off", "on"),
    "attention": ("gqa", "mla"),
    "context": get_args(arguments.ContextKind),
    "kernel": get_args(arguments.AttentionKernel),
    "qkv": ("separate", "fused", "fused_rotated"),
    "heads": ("equal", "grouped"),
    "tied": ("off", "on"),
    "main_gradient": ("none", "copied"),
    "qk_norm": ("none", "per_head", "full", "unweighted"),
    "ffn": ("gated", "plain", "plain_unfused", "relu"),
    "experts": ("none", "routed", "clamped", "every_token"),
    "loss": get_args(arguments.LossKernel),
    "logits": ("upcast", "upcast_shifted", "upcast_in_model", "own_dtype", "compiled", "vocab_parallel"),
    "selective": ("modules", "operators"),
    "reduction": ("copied", "in_place"),
    "expert_base": ("plain", "quantized"),
    "frozen_units": ("none", "fsdp1"),
    "kv": ("grouped", "expanded"),
    "gather": ("none", "units"),
    "buckets": ("none", "ddp", "deepspeed"),
    "ffn_kind": ("dense", "moe"),
    "loading": get_args(arguments.WeightLoading),
    "saving": get_args(arguments.CheckpointSaving),
}


def _possible(choices):
    """Combinations that a case can have."""
    if choices.get("ffn_kind") == "moe" and choices.get("experts") == "none":
        return False
    if choices.get("logits") == "vocab_parallel" and choices.get("loss") == "fused":
        return False  # Megatron's fused loss is the fused_logits kernel
    return not (choices.get("experts") == "every_token" and choices.get("implementation") == "fused")


ALWAYS_FILLED = {
    "weights.dense", "weights.experts", "norms.kept", "attention.qkv", "attention.core", "attention.output",
    "loss.kept", "head.norm", "working.head", "working.attention", "host.loading", "host.saving",
}  # fmt: skip


@pytest.mark.parametrize("slot", SLOTS)
def test_for_any_choice_at_most_one_term_claims_a_slot(slot):
    terms = SLOTS[slot]
    kinds = sorted({kind for term in terms for kind in term.when})
    always = slot in ALWAYS_FILLED
    for values in itertools.product(*(CHOICES[kind] for kind in kinds)):
        choices = dict(zip(kinds, values, strict=True))
        if not _possible(choices):
            continue
        matching = [term.name for term in terms if term.applies(choices)]
        assert len(matching) <= 1, (choices, matching)
        if always:
            assert len(matching) == 1, choices


def test_a_layer_always_has_one_feed_forward_of_each_slot():
    kinds = ("ffn", "implementation", "experts", "ffn_kind", "adapters", "loss", "logits")
    for values in itertools.product(*(CHOICES[kind] for kind in kinds)):
        choices = {name: options[0] for name, options in CHOICES.items()} | dict(zip(kinds, values, strict=True))
        if not _possible(choices):
            continue
        chosen = select(choices)
        wanted = (
            {"ffn.input", "ffn.up", "ffn.activation", "working.ffn"}
            if choices["ffn_kind"] == "dense"
            else {"moe.input", "moe.router", "moe.dispatched", "moe.up", "moe.activation", "moe.shared", "working.ffn"}
        )
        if choices["ffn"] == "relu" and choices["ffn_kind"] == "dense":
            wanted = wanted - {"ffn.up"}
        assert wanted <= set(chosen), choices


def test_every_slot_is_placed_in_time():
    place = Place(case(**KINDS["8b full on one"]), case(**KINDS["8b full on one"]).layout)
    placed = {
        *presence.outer_presence(place), *phases.LAYER_SLOTS, *phases.WORKING_SLOTS, *phases.CHECKPOINT_SLOTS,
        *node_instants.SLOTS.values(),
    }  # fmt: skip
    assert set(SLOTS) == placed


def test_values_are_read_once_and_only_when_asked():
    values = Values(Place(case(**KINDS["8b full on one"]), case(**KINDS["8b full on one"]).layout))
    assert values["h"] == 4096
    assert set(values) == {"h"}


def _columns_of(layouts):
    def number(name, value):
        if name == "recompute":
            return RECOMPUTE_POLICIES.index(value)
        return OFFLOAD_TARGETS.index(value) if isinstance(value, str) else float(value)

    return Columns(
        **{
            field.name: np.array([number(field.name, getattr(layout, field.name)) for layout in layouts], dtype=float)
            for field in fields(Columns)
        }
    )


@pytest.mark.parametrize("kind", KINDS)
def test_columns_give_the_same_bytes_as_one_case(kind):
    one = case(**KINDS[kind])
    judged = judge(one, _columns_of([one.layout] * 3))
    breakdown = estimate.estimate(one)
    assert judged.peak_bytes.tolist() == [breakdown.peak_bytes] * 3
    assert judged.reserved_bytes.tolist() == [breakdown.reserved_bytes] * 3
