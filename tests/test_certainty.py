"""How sure an answer says it is: bands, questions, flips, a measured peak, next calls that can be made."""

from __future__ import annotations

import pytest

from advisor import estimate_memory, recommend_setup
from advisor.api import OPERATIONS
from advisor.catalog.sources import source
from advisor.request import read_request
from advisor.terms import TERMS
from advisor.units import as_gib, gib

JOB = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"}


def test_evidence_of_a_term_follows_the_kind_of_its_source():
    for term in TERMS:
        is_paper = source(term.source.split()[0]).kind == "paper"
        assert (term.evidence == "derived") == is_paper, term.source


def test_a_best_effort_model_makes_any_recipe_assumed():
    unknown = {"model_type": "newcomer", "hidden_size": 4096, "num_hidden_layers": 32, "num_attention_heads": 32,
               "intermediate_size": 11008, "vocab_size": 32000}  # fmt: skip
    answer = estimate_memory(hf_config=unknown, hardware=JOB["hardware"], framework="fsdp2")
    assert answer.evidence == "assumed"


def test_a_measured_peak_narrows_the_band_and_names_the_assumption_that_explains_it():
    fused = estimate_memory(**JOB, loss="fused").peak_bytes
    answer = estimate_memory(**JOB, measured_peak_gib=fused / gib(1))
    assert answer.peak_bytes_low < fused < answer.peak_bytes_high < answer.peak_bytes
    assert any("loss=fused explains it" in text for text in answer.warnings)
    assert answer.questions == ()


def test_the_verdict_rests_on_a_measured_peak():
    assert estimate_memory(**JOB).verdict == "comfortable"
    assert estimate_memory(**JOB, measured_peak_gib=85).verdict == "does_not_fit"


def test_a_measured_peak_that_agrees_is_said_to_agree():
    ours = estimate_memory(**JOB).peak_bytes
    answer = estimate_memory(**JOB, measured_peak_gib=ours / gib(1))
    assert any("they agree" in text for text in answer.warnings)


def test_questions_are_arguments_nobody_gave():
    assert "framework" in estimate_memory(**{**JOB, "framework": None}).questions
    asked = estimate_memory(**JOB).questions
    assert asked
    assert not set(asked) & set(JOB)


def test_flips_say_whether_another_plausible_value_changes_the_fit():
    standard, fused = estimate_memory(**JOB), estimate_memory(**JOB, loss="fused")
    outside = gib(79.1) - standard.usable_bytes
    between = (standard.reserved_bytes + fused.reserved_bytes) / 2 + outside
    answer = estimate_memory(**JOB, gpu_memory_gib=as_gib(between), detail="full")
    flips = {a.argument: a.flips_verdict for a in answer.assumptions}
    assert answer.margin_bytes < 0
    assert flips["loss"]
    assert not flips["keep_logits"]
    assert flips["hardware"] is None
    assert all(a.flips_verdict is None for a in standard.assumptions)


@pytest.mark.parametrize(
    "more", [{}, {"tensor_parallel": 4}, {"method": "lora", "lora_rank": 8}, {"cpu_memory_gib": 512}]
)
def test_a_next_call_can_be_made_as_it_stands(more):
    for call in estimate_memory(**JOB, **more).next_calls:
        read_request(OPERATIONS[call.tool].request, call.arguments)
        assert call.arguments["model"] == JOB["model"]
        assert {"lora_rank", "gpu_memory_gib"} & set(more) <= set(call.arguments)


def test_loading_evaluating_and_saving_stand_beside_the_steps_own_phases():
    answer = estimate_memory(**JOB)
    sizes = {phase.phase: phase.bytes for phase in answer.phases}
    resting = next(phase for phase in answer.phases if phase.phase == "save").bytes
    assert sizes["load"] < resting < sizes["evaluate"] < answer.peak_bytes


def test_a_framework_that_divides_no_state_is_left_out_of_the_way_on():
    found = estimate_memory(model="llama-3-8b", hardware="1x8 H100-80GB", framework="ddp")
    assert found.verdict == "does_not_fit"
    assert recommend_setup(**found.next_calls[0].arguments).verdict in ("fits", "comfortable")
