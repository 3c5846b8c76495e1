"""Sweeps and limits: each row is what estimate_memory says, each limit is what trying every value finds."""

from __future__ import annotations

import random

import pytest

import advisor
from advisor import AdvisorError
from advisor.limits.job import candidates_of, measured
from advisor.request import read_request
from advisor.sweep.axes import read_axes
from advisor.types import CaseArguments
from advisor.words import explore_text, limit_text

DENSE = {"model": "llama-3-8b", "hardware": "2x8 H100-80GB", "framework": "megatron", "global_batch": 64}
VARY = {
    "tensor_parallel": [1, 2, 4, 8],
    "pipeline_parallel": [1, 2, 3],
    "micro_batch": "1..8 *2",
    "recompute": ["none", "full", "near_free"],
    "sequence_length": ["2k", "8k"],
    "offload_optimizer": ["none", "cpu"],
}


def test_a_sweeps_rows_are_what_estimate_memory_says():
    answer = advisor.explore(case=DENSE, vary=VARY, limit=10_000)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    assert answer.judged == len(rows)
    assert answer.judged + answer.refused == 4 * 3 * 4 * 3 * 2 * 2
    for row in random.Random(1).sample(rows, 25):
        same = advisor.estimate_memory(**DENSE, **{name: row[name] for name in VARY})
        assert (row["peak_bytes"], row["reserved_bytes"], row["margin_bytes"], row["verdict"]) == (
            same.peak_bytes,
            same.reserved_bytes,
            same.margin_bytes,
            same.verdict,
        )


def test_what_a_sweep_refuses_estimate_memory_refuses():
    vary = {"tensor_parallel": [1, 3, 5], "micro_batch": [1, 3, 64], "expert_parallel": [1, 2]}
    answer = advisor.explore(case=DENSE, vary=vary, limit=10_000)
    legal = {tuple(row[:3]) for row in answer.rows}
    for tensor in vary["tensor_parallel"]:
        for micro in vary["micro_batch"]:
            for expert in vary["expert_parallel"]:
                arguments = {"tensor_parallel": tensor, "micro_batch": micro, "expert_parallel": expert}
                try:
                    advisor.estimate_memory(**DENSE, **arguments)
                except AdvisorError:
                    assert (tensor, micro, expert) not in legal
                else:
                    assert (tensor, micro, expert) in legal


def test_where_sort_and_limit_choose_rows():
    answer = advisor.explore(case=DENSE, vary=VARY, where="fits and micro_batch >= 2", sort="-peak_bytes", limit=7)
    peaks = [row[answer.columns.index("peak_bytes")] for row in answer.rows]
    assert len(peaks) == 7
    assert peaks == sorted(peaks, reverse=True)
    assert all(row[answer.columns.index("micro_batch")] >= 2 for row in answer.rows)
    words = advisor.explore(case=DENSE, vary=VARY, where="recompute == 'full'", limit=10_000)
    assert {row[words.columns.index("recompute")] for row in words.rows} == {"full"}


def test_turning_points_name_the_last_value_that_fits():
    case = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "recompute": "full"}
    answer = advisor.explore(case=case, vary={"micro_batch": "1..32 *2"})
    verdicts = {n: advisor.estimate_memory(**case, micro_batch=n).verdict for n in (1, 2, 4, 8, 16, 32)}
    last = max(n for n, verdict in verdicts.items() if verdict in ("fits", "comfortable"))
    assert 1 < last < 32
    assert answer.turning_points == (f"micro_batch: {last} fits, {2 * last} does not",)


def test_csv_holds_the_same_rows():
    shown = advisor.explore(case=DENSE, vary=VARY, limit=5)
    text = advisor.explore(case=DENSE, vary=VARY, limit=5, format="csv")
    lines = text.csv.splitlines()
    assert lines[0] == ",".join(shown.columns)
    assert lines[1:] == [",".join(str(value) for value in row) for row in shown.rows]
    assert text.rows == ()


LISTS = {
    "stage_layers": ({"framework": "megatron"}, [[16, 16], [15, 17]], ["16,16", "15,17"]),
    "recompute_modules": ({}, [["mlp"], ["mlp", "core_attn"], None], ["mlp", "mlp,core_attn", None]),
    "lora_targets": ({"method": "lora"}, ["attention", ["q_proj", "v_proj"]], ["attention", "q_proj,v_proj"]),
    "lora_modules_to_save": ({"method": "lora"}, [["embed_tokens"], ["lm_head"]], ["embed_tokens", "lm_head"]),
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_vary_and_are_written_as_text(name):
    more, values, written = LISTS[name]
    case = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", **more}
    answer = advisor.explore(case=case, vary={name: values, "micro_batch": "1..64 *2"})
    assert {row[0] for row in answer.rows} == set(written)
    chosen = advisor.explore(case=case, vary={name: values}, where=f"{name} == {written[0]!r}", format="csv")
    first = "" if "," not in written[0] else '"'
    assert chosen.csv.splitlines()[1].startswith(f"{first}{written[0]}{first},")
    same = advisor.estimate_memory(**case, **{name: written[0]}).peak_bytes
    assert f",{same}," in chosen.csv
    assert all("(" not in text for text in answer.turning_points)


def test_a_budget_ends_a_sweep_and_says_so():
    answer = advisor.explore(case=DENSE, vary={"sequence_length": "1024..65536 1024"}, budget_s=1e-6)
    assert not answer.complete
    assert answer.judged >= 1


@pytest.mark.parametrize(
    ("vary", "pointer"),
    [
        ({}, "/vary"),
        ({"micro_batches": [1]}, "/vary"),
        ({"detail": ["full"]}, "/vary/detail"),
        ({"measured_peak_gib": [20]}, "/vary/measured_peak_gib"),
        ({"micro_batch": []}, "/vary/micro_batch"),
        ({"micro_batch": "1..x"}, "/vary/micro_batch"),
        ({"micro_batch": "8..1"}, "/vary/micro_batch"),
        ({"micro_batch": "1..8 *1"}, "/vary/micro_batch"),
        ({"micro_batch": "1..8 0"}, "/vary/micro_batch"),
        ({"micro_batch": [0]}, "/vary/micro_batch"),
        ({"recompute": ["some"]}, "/vary/recompute"),
        ({"micro_batch": "1..4096", "sequence_length": "1..4096"}, "/vary"),
    ],
)
def test_an_axis_that_cannot_be_read_is_refused(vary, pointer):
    with pytest.raises(AdvisorError) as refused:
        read_axes(vary)
    assert refused.value.pointer == pointer


@pytest.mark.parametrize(
    ("more", "pointer"),
    [
        ({"where": "peak <"}, "/where"),
        ({"where": "memory < 3"}, "/where"),
        ({"where": "recompute < 3"}, "/where"),
        ({"where": "micro_batch > 1/0"}, "/where"),
        ({"sort": "speed"}, "/sort"),
    ],
)
def test_a_condition_or_order_that_cannot_be_read_is_refused(more, pointer):
    with pytest.raises(AdvisorError) as refused:
        advisor.explore(case=DENSE, vary={"micro_batch": [1], "recompute": ["none", "full"]}, **more)
    assert refused.value.pointer == pointer


def test_ranges_count_up_and_multiply():
    axes = read_axes({"micro_batch": "1..20 *2", "sequence_length": "1k..4k 1k", "offload_fraction": "0..1 0.25"})
    assert axes == {
        "micro_batch": (1, 2, 4, 8, 16),
        "sequence_length": (1024, 2048, 3072, 4096),
        "offload_fraction": (0, 0.25, 0.5, 0.75, 1),
    }


# --- the node --------------------------------------------------------------------------------------------------------

#: Whose way of loading a script decides, and whose offload lies on the node while a checkpoint is saved.
ON_A_NODE = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "deepspeed", "recompute": "full"}
OF_THE_NODE = {
    "weight_loading": [None, "by_tensor", "every_rank_fp32"],
    "checkpoint_saving": [None, "whole"],
    "cpu_memory_gib": [None, 24, 64, 160, 256],
    "zero_stage": [2, 3],
    "offload_optimizer": ["none", "cpu"],
}


def test_a_row_fits_where_the_node_has_room_at_every_instant_that_counts():
    answer = advisor.explore(case=ON_A_NODE, vary=OF_THE_NODE, limit=10_000)
    rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
    assert len(rows) == answer.judged == 3 * 2 * 5 * 2 * 2
    for row in rows:
        same = advisor.estimate_memory(**ON_A_NODE, **{name: row[name] for name in OF_THE_NODE})
        assert (row["verdict"], row["host_verdict"]) == (same.verdict, same.host.verdict)
        assert row["host_peak_bytes_per_node"] == same.host.most_bytes_per_node
        assert row["host_bytes_per_node"] == same.host.cpu_bytes_per_node
        assert row["fits"] == (same.decisive_verdict in ("comfortable", "fits", "needs_info"))
    assert {row["host_verdict"] for row in rows} == {"comfortable", "fits", "tight", "does_not_fit", "needs_info"}


def test_where_more_memory_helps_a_turning_point_is_the_first_value_that_fits():
    vary = {"cpu_memory_gib": [32, 64, 128, 256, 512]}
    answer = advisor.explore(case=ON_A_NODE | {"weight_loading": "every_rank"}, vary=vary)
    assert answer.turning_points == ("cpu_memory_gib: 128 fits, 64 does not",)


def test_a_table_shows_the_nodes_columns_where_they_say_something():
    cramped = advisor.explore(case=ON_A_NODE, vary={"weight_loading": ["every_rank"], "cpu_memory_gib": [64, 512]})
    assert "host_verdict" in explore_text(cramped)
    assert "host" not in explore_text(advisor.explore(case=LIMITS[0], vary={"micro_batch": [1, 2]}))


@pytest.mark.parametrize("of", ["gpus", "device", "micro_batch"])
def test_nothing_fits_on_a_node_that_cannot_load_the_weights(of):
    case = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "cpu_memory_gib": 1, "weight_loading": "every_rank"}
    answer = advisor.find_limit(case=case, of=of)
    assert answer.value is None
    assert answer.beyond.host_verdict == "does_not_fit"
    assert [growth.slot for growth in answer.stopped_by] == ["host.loading"]
    assert "to load by weight_loading=every_rank" in answer.warnings[0]
    assert "of the host per node, does not fit" in limit_text(answer)


def test_gpus_of_a_node_are_tried_one_by_one_for_more_of_them_may_load_too_much():
    """Each rank loads 30 GiB: three have room in 100 GiB and four have not; two GPUs are too few."""
    case = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "weight_loading": "every_rank"}
    assert advisor.find_limit(case=case | {"cpu_memory_gib": 100}, of="gpus").value == 3
    four = advisor.recommend_setup(**case | {"hardware": "1x4 H100-80GB", "cpu_memory_gib": 100})
    assert four.verdict == "does_not_fit"


LIMITS = [
    {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "recompute": "full"},
    {"model": "qwen2.5-7b", "hardware": "1 RTX-4090", "method": "qlora", "sequence_length": 2048},
    {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron", "tensor_parallel": 8,
     "pipeline_parallel": 2, "recompute": "full"},
    {"model": "llama-3-8b", "hardware": "2x8 A100-80GB", "framework": "deepspeed", "zero_stage": 3, "global_batch": 96},
]  # fmt: skip


@pytest.mark.parametrize("case", LIMITS, ids=lambda case: f"{case['model']}-{case.get('framework')}")
@pytest.mark.parametrize("of", ["micro_batch", "sequence_length"])
def test_a_limit_is_what_trying_every_value_finds(case, of):
    answer = advisor.find_limit(case=case, of=of)
    arguments = read_request(CaseArguments, case)
    candidates = candidates_of(arguments, of, allow_paths=True)
    near = [value for value in candidates if value <= 2 * int(answer.value or candidates[0])][:60]
    fitting = [value for value in near if measured(arguments, of, value, allow_paths=True).fits]
    assert (answer.value or 0) >= max(fitting, default=0)
    assert answer.value is None or measured(arguments, of, int(answer.value), allow_paths=True).fits
    if answer.beyond:
        assert not measured(arguments, of, int(answer.beyond.value), allow_paths=True).fits
        assert answer.stopped_by


def test_one_lever_pulled_goes_further():
    answer = advisor.find_limit(case=LIMITS[0] | {"recompute": None}, of="sequence_length")
    further = {lever.argument: lever.limit for lever in answer.next_limits}
    assert further["recompute"] > answer.value
    given = advisor.find_limit(case=LIMITS[0] | {"recompute": "full"}, of="sequence_length")
    assert given.value == further["recompute"]


def test_the_fewest_gpus_fit_and_fewer_do_not():
    case = {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "sequence_length": 4096}
    answer = advisor.find_limit(case=case, of="gpus")
    assert answer.at
    assert answer.at.verdict in ("fits", "comfortable")
    nodes = int(answer.value) // 8
    again = advisor.recommend_setup(**{**case, "hardware": f"{nodes}x8 H100-80GB"})
    assert again.estimate.peak_bytes == answer.at.peak_bytes


def test_the_smallest_device_is_the_first_by_memory_on_which_it_fits():
    answer = advisor.find_limit(
        case={"model": "llama-3-8b", "hardware": "1x1 H100-80GB", "method": "lora"}, of="device"
    )
    assert answer.at
    assert answer.beyond
    assert answer.beyond.usable_bytes < answer.at.usable_bytes


def test_images_are_not_modelled_and_say_so():
    with pytest.raises(AdvisorError) as refused:
        advisor.find_limit(case=LIMITS[0], of="images_per_sample")
    assert refused.value.code == "not_modelled"
