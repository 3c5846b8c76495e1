"""The texts of answers."""

from __future__ import annotations

import pytest

import advisor
from advisor.types import Layout
from advisor.units import format_bytes
from advisor.words import memory_text, setup_text
from advisor.words.phrases import layout_words
from advisor.words.setup import _longest
from advisor.words.tables import rounded_to_sum
from tests.answers import GIB, memory_answer, setup_answer
from tools import find_tool

CHARACTERS_PER_TOKEN = 4
MOST_TOKENS = 800


def printed_terms(text: str) -> tuple[list[float], float]:
    """The figures of the table of terms, and its last row, the peak."""
    block = next(part for part in text.split("\n\n") if part.startswith("Terms"))
    figures = [float(line.split()[-1].replace(",", "")) for line in block.splitlines()[1:]]
    return figures[:-1], figures[-1]


def test_the_printed_terms_add_up_to_the_printed_peak():
    for text in (memory_text(memory_answer()), setup_text(setup_answer())):
        figures, peak = printed_terms(text)
        assert sum(figures) == pytest.approx(peak, abs=1e-9)
        assert f"Peak {peak} GiB" in text


@pytest.mark.parametrize("parts", [[1, 1, 1], [GIB // 3] * 3, [7 * GIB + 51_000_000] * 9, [GIB, 0, 5]])
def test_rounding_to_a_sum_moves_no_figure_by_more_than_one_unit(parts):
    figures = [float(figure) for figure in rounded_to_sum(parts, sum(parts))]
    digits = len(rounded_to_sum(parts, sum(parts))[0].split(".")[1])
    assert sum(figures) == pytest.approx(round(sum(parts) / GIB, digits), abs=1e-9)
    assert all(abs(figure - part / GIB) <= 10**-digits for figure, part in zip(figures, parts, strict=True))


def test_a_term_that_is_not_alive_at_the_peak_is_not_in_the_table():
    assert "step_scratch" not in memory_text(memory_answer())


def test_a_summary_is_short():
    for text in (memory_text(memory_answer()), setup_text(setup_answer())):
        assert len(text) / CHARACTERS_PER_TOKEN < MOST_TOKENS


def test_a_real_recommendation_for_many_gpus_is_short():
    answer = advisor.recommend_setup(model="deepseek-v3", hardware="64x8 H800-80GB")
    assert len(setup_text(answer)) / CHARACTERS_PER_TOKEN < MOST_TOKENS


def test_the_host_is_told_where_the_job_needs_it():
    unknown = {"cpu_bytes_per_node": 900 * GIB, "nvme_bytes_per_node": 0, "verdict": "needs_info"}
    assert "Host per node: 900.0 GiB CPU; whether the node has it is unknown" in memory_text(
        memory_answer(host=unknown)
    )
    assert "Host per node" not in memory_text(memory_answer(host={**unknown, "cpu_bytes_per_node": 0}))


def test_the_verdict_and_the_margin_come_first():
    first, second = memory_text(memory_answer()).splitlines()[:2]
    assert first.startswith("FITS")
    assert "usable per GPU: 15.5 GiB left" in second


def test_a_misfit_says_by_how_much():
    text = memory_text(memory_answer(verdict="does_not_fit", margin_bytes=-3 * GIB))
    assert text.startswith("DOES NOT FIT")
    assert "3.0 GiB too much" in text


def test_what_could_flip_the_verdict_leads_the_assumptions_and_what_was_given_is_none():
    assumed = next(line for line in memory_text(memory_answer()).splitlines() if line.startswith("Assumed"))
    assert assumed.startswith("Assumed: micro_batch=1 (default, flips the verdict); ")
    assert "model=" not in assumed


def test_stages_show_only_with_a_pipeline():
    one = memory_answer(stages=memory_answer().stages[:1])
    assert "Pipeline stages" in memory_text(memory_answer())
    assert "Pipeline stages" not in memory_text(one)


def test_full_detail_shows_formulas_with_their_sources():
    assert "weights = N * w = 70 * 2 [a paper, eq. 2]" in memory_text(memory_answer(), full=True)


def test_a_recommendation_shows_layout_steps_and_alternatives():
    text = setup_text(setup_answer())
    assert "Layout: tensor_parallel=8 sequence_parallel=true pipeline_parallel=4\n" in text
    assert "1. tensor_parallel 1 -> 8: 200.0 GiB -> 190.0 GiB." in text
    assert "Next rung (1.07x the time, 50.0 GiB)" in text
    assert "Offered, not applied: train adapters only" in text


def test_no_more_than_three_next_calls_are_offered():
    assert memory_text(memory_answer()).count("Next: ") == 3


NOTHING = "one GPU, nothing split"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, NOTHING),
        ({"context_parallel_kind": "ulysses", "zero_stage": 3}, NOTHING),
        ({"pipeline_schedule": "interleaved", "virtual_stages": 2, "stage_layers": (8,)}, NOTHING),
        ({"offload_fraction": 0.5}, NOTHING),
        ({"zero_stage": 3, "offload_optimizer": "cpu"}, "offload_optimizer=cpu"),
        (
            {"data_parallel_shard": 8, "reshard_after_forward": False, "zero_stage": 2},
            "data_parallel_shard=8 zero_stage=2",
        ),
        (
            {
                "context_parallel": 2,
                "context_parallel_kind": "ulysses",
                "zero_stage": 3,
                "reshard_after_forward": False,
            },
            "context_parallel=2 context_parallel_kind=ulysses zero_stage=3 reshard_after_forward=false",
        ),
        ({"pipeline_parallel": 2, "stage_layers": (3, 2)}, "pipeline_parallel=2 stage_layers=3,2"),
    ],
)
def test_a_layout_tells_only_what_says_something(arguments, words):
    assert layout_words(Layout(**arguments)) == words


@pytest.mark.parametrize(("lengths", "cut"), [([10, 10, 90], 80), ([50, 90, 90], 33), ([10, 20], 20), ([], 100)])
def test_what_short_reasons_leave_goes_to_the_long_ones(lengths, cut):
    assert _longest(lengths, total=100) == cut


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (96, "96 B"), (512, "0.5 KiB"), (8192, "8.0 KiB"), (2**20, "1.0 MiB"), (GIB, "1.0 GiB")],
)
def test_a_small_size_is_no_zero(size, words):
    assert format_bytes(size) == words


def test_what_is_trained_beyond_the_total_is_named():
    text = memory_text(
        advisor.estimate_memory(
            model="deepseek-v3", hardware="64x8 H100", framework="megatron", expert_parallel=64, tensor_parallel=2
        )
    )
    assert "Parameters: 671.0 B and 11.6 B of multi-token prediction, all trainable," in text


def test_where_nothing_fits_the_largest_is_told_and_nothing_grows():
    asked = {"case": {"model": "llama-3-70b", "hardware": "1 RTX-4090"}, "of": "micro_batch"}
    text = find_tool("find_limit").reply(asked, allow_paths=True).text
    assert "Largest there:\n  optimizer.dense: 525.7 GiB" in text
    assert "->" not in text


def test_a_single_gpu_is_no_gpus():
    with pytest.raises(advisor.AdvisorError, match=r"does not divide the 1 GPU of the hardware"):
        advisor.estimate_memory(model="llama-3-8b", hardware="1 H100", tensor_parallel=2)
