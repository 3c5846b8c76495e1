"""The recommendation behaves as the people who do this for a living do, and never against its own estimate."""

from functools import cache

import pytest

import advisor
from advisor.answer import answer
from advisor.errors import AdvisorError
from advisor.recommend import recommend
from advisor.resolve import resolve
from advisor.search.batch import default_batch
from advisor.search.choose import ON_THE_GPUS
from advisor.types import CaseArguments
from advisor.units import format_bytes

JOBS = {
    "8b-1": {"model": "llama-3-8b", "hardware": "1x1 H100-80GB"},
    "8b-lora": {"model": "llama-3-8b", "hardware": "1x1 H100-80GB", "method": "lora"},
    "8b-8": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "sequence_length": 8192},
    "70b": {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "sequence_length": 8192},
    "70b-megatron": {
        "model": "llama-3-70b",
        "hardware": "4x8 H100-80GB",
        "sequence_length": 8192,
        "framework": "megatron",
    },
    "qwen3-moe": {"model": "qwen3-30b-a3b", "hardware": "1x8 H100-80GB"},
    "deepseek": {"model": "deepseek-v3", "hardware": "64x8 H800-80GB"},
    "m3-8k": {"model": "minimax-m3", "hardware": "64x8 H100-80GB", "sequence_length": 8192},
    "m3-128k": {"model": "minimax-m3", "hardware": "64x8 H100-80GB", "sequence_length": 131_072},
    "m3-1m": {"model": "minimax-m3", "hardware": "64x8 H100-80GB", "sequence_length": 1_048_576},
}
FITTING = list(JOBS)


@cache
def recommended(job):
    return recommend(CaseArguments(**JOBS[job]), allow_paths=False)


def ask(**arguments):
    return recommend(CaseArguments(**arguments), allow_paths=False)


@pytest.mark.parametrize("job", FITTING)
def test_the_layout_sent_back_gives_the_same_figures(job):
    found = recommended(job)
    call = found.next_calls[0]
    again = answer(resolve(CaseArguments(**call.arguments), allow_paths=False))
    assert call.tool == "estimate_memory"
    assert (again.layout, again.peak_bytes, again.verdict) == (
        found.layout,
        found.estimate.peak_bytes,
        found.estimate.verdict,
    )


@pytest.mark.parametrize("job", FITTING)
def test_what_is_recommended_fits_with_the_headroom(job):
    found = recommended(job)
    assert found.estimate.verdict in ("fits", "comfortable")
    assert found.verdict == ("needs_info" if found.estimate.host.cpu_bytes_per_node else found.estimate.verdict)
    assert found.estimate.reserved_bytes <= 0.95 * found.estimate.usable_bytes


@pytest.mark.parametrize("job", FITTING)
def test_tensor_parallel_stays_inside_the_node_with_sequence_parallel(job):
    layout = recommended(job).layout
    assert layout.tensor_parallel <= 8
    assert layout.sequence_parallel == (layout.tensor_parallel > 1)


@pytest.mark.parametrize("job", FITTING)
def test_the_walk_ends_at_the_recommended_peak_and_gives_every_lever_a_reason(job):
    found = recommended(job)
    assert found.steps[-1].after == found.estimate.peak_bytes
    assert [step.before for step in found.steps[1:]] == [step.after for step in found.steps[:-1]]
    for step in found.steps:
        assert step.because
        assert step.sources
        assert step.why_not_less or not step.lever


@pytest.mark.parametrize("job", FITTING)
def test_one_notch_less_alone_never_fits_at_a_lower_price(job):
    for step in recommended(job).steps:
        if step.id in ("tensor-parallel", "pipeline-parallel", "context-parallel", "expert-parallel"):
            assert any(words in step.why_not_less for words in ("misses by", "illegal", "does not divide", "takes"))


def test_experts_are_spread_before_they_are_cut():
    for job in ("qwen3-moe", "deepseek", "m3-8k", "m3-128k", "m3-1m"):
        layout = recommended(job).layout
        assert layout.expert_parallel > 1
        assert layout.expert_tensor_parallel == 1


def test_context_parallel_grows_with_the_sequence_and_is_absent_below_8k():
    context = [recommended(job).layout.context_parallel for job in ("m3-8k", "m3-128k", "m3-1m")]
    assert context[0] < context[1] < context[2]
    assert recommended("deepseek").layout.context_parallel == 1
    assert recommended("qwen3-moe").layout.context_parallel == 1


def test_an_8b_on_one_gpu_needs_the_host_and_says_what_would_not():
    found = recommended("8b-1")
    assert found.rung == "rung-2-cpu-optimizer"
    assert found.layout.offload_optimizer == "cpu"
    assert {"method": "lora"} in [suggestion.change for suggestion in found.suggestions]
    assert "the layout needs host memory and it is unknown: give cpu_memory_gib" in found.warnings


def test_adapters_on_one_gpu_need_no_lever():
    found = recommended("8b-lora")
    assert found.rung == "rung-0-sharding"
    assert not [step for step in found.steps if step.lever]


def test_an_8b_on_one_node_is_sharded_and_not_cut():
    layout = recommended("8b-8").layout
    assert recommended("8b-8").rung == "rung-0-sharding"
    assert layout.tensor_parallel * layout.pipeline_parallel * layout.context_parallel == 1


def test_a_70b_in_megatron_gets_the_layout_that_its_makers_publish():
    # Megatron-Bridge's performance recipe for Llama-3-70B on 64 H100: tensor 4, pipeline 4, context 2
    layout = ask(**{**JOBS["70b-megatron"], "hardware": "8x8 H100-80GB"}).layout
    assert (layout.tensor_parallel, layout.pipeline_parallel) == (4, 4)
    assert layout.context_parallel <= 2


def test_a_small_mixture_is_no_slower_than_in_the_layout_that_nvidia_publishes():
    # Megatron-Bridge, recipes/qwen/h100/qwen3_moe.py: full fine-tuning of Qwen3-30B-A3B on 8 H100
    published = {"tensor_parallel": 4, "pipeline_parallel": 2, "expert_parallel": 4, "recompute": "near_free"}
    found = recommended("qwen3-moe")
    batch = found.next_calls[0].arguments["global_batch"]
    same = CaseArguments(**JOBS["qwen3-moe"], framework="megatron", global_batch=batch, **published)
    theirs = answer(resolve(same, allow_paths=False))
    assert theirs.verdict in ("fits", "comfortable")
    assert found.estimate.time.step_time_s <= theirs.time.step_time_s


def test_the_compared_framework_is_said_with_the_reason():
    said = next(known for known in recommended("70b").assumptions if known.argument == "framework")
    assert said.origin == "derived"
    assert "compared with fsdp2" in said.note


def test_frameworks_that_cost_the_same_stand_by_the_ladders_preferences():
    found = recommended("8b-8")
    cut = next(each for each in found.alternatives if each.why == "the best of megatron")
    assert cut.cost < 1.03
    assert cut.layout.tensor_parallel > found.layout.tensor_parallel == 1


def test_for_speed_alone_a_framework_is_taken_whatever_its_rung():
    fast = ask(**JOBS["70b"], objective="throughput")
    assert all(each.cost >= 1 for each in fast.alternatives)


def test_an_uneven_split_is_spelt_out():
    layout = recommended("deepseek").layout
    assert sum(layout.stage_layers) == 61
    assert len(layout.stage_layers) == layout.pipeline_parallel


def test_given_levers_are_kept():
    found = ask(**JOBS["70b-megatron"], tensor_parallel=8, pipeline_parallel=2, recompute="full")
    assert (found.layout.tensor_parallel, found.layout.pipeline_parallel, found.layout.recompute) == (8, 2, "full")
    assert "was given" in next(step for step in found.steps if step.id == "tensor-parallel").why_not_less


def test_a_given_lever_is_counted_on_its_own_rung():
    assert ask(**JOBS["8b-8"], recompute="full").rung == "rung-1-recompute"
    assert ask(**JOBS["8b-8"], offload_optimizer="nvme").rung == "rung-3-nvme"


def test_a_given_global_batch_is_kept_and_never_changed():
    found = ask(**JOBS["70b"], global_batch=48)
    layout = found.layout
    assert layout.micro_batch * layout.data_parallel * layout.gradient_accumulation == 48


def test_the_law_in_its_strict_form_leaves_near_free_recompute_to_the_second_rung():
    strict = ask(**JOBS["70b-megatron"], law="strict")
    assert not (strict.rung == "rung-0-sharding" and strict.layout.recompute != "none")


def test_the_fewest_gpus_that_fit_are_said_and_used():
    found = ask(**JOBS["8b-8"], objective="fewest_gpus")
    assert found.layout.world < 8
    assert found.next_calls[0].arguments["hardware"] == f"1x{found.layout.world} h100-80gb"
    assert ("hardware", "objective=fewest_gpus") in [(known.argument, known.note) for known in found.assumptions]


def test_the_lowest_cost_is_never_above_that_of_all_gpus():
    found = ask(**JOBS["70b-megatron"], objective="lowest_cost")
    assert found.verdict in ("fits", "comfortable")
    assert 8 <= found.layout.world <= 32


def test_throughput_takes_the_cheapest_step_of_all():
    fast = ask(**JOBS["70b-megatron"], objective="throughput")
    assert fast.fastest is not None
    assert fast.fastest.cost == 1.0


def test_what_fits_nowhere_gets_the_closest_layout_and_verified_ways_out():
    found = ask(model="llama-3-70b", hardware="1x2 H100-80GB", framework="megatron", sequence_length=8192)
    assert found.verdict == "does_not_fit"
    assert found.steps[-1].id == "more-gpus"
    assert found.estimate.margin_bytes < 0
    for suggestion in (each for each in found.suggestions if each.fits):
        again = ask(
            **{"model": "llama-3-70b", "hardware": "1x2 H100-80GB", "framework": "megatron"}
            | {"sequence_length": 8192}
            | suggestion.change
        )
        assert again.verdict in ("fits", "comfortable")
    assert any("hardware" in suggestion.change for suggestion in found.suggestions)


#: Jobs whose node lacks memory: to save, to load, to hold what is offloaded; or of which nobody said what it has.
CRAMPED = {
    "save": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "megatron", "cpu_memory_gib": 64},
    "save whole": {
        "model": "llama-3-8b", "hardware": "1x2 H100-80GB", "cpu_memory_gib": 64, "checkpoint_saving": "whole",
    },
    "load": {
        "model": "llama-3-70b", "hardware": "1x8 A100-80GB", "framework": "deepspeed", "cpu_memory_gib": 1500,
        "weight_loading": "every_rank_fp32",
    },
    "load and save": {
        "model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2", "cpu_memory_gib": 32,
        "weight_loading": "every_rank", "checkpoint_saving": "whole",
    },
    "offload": {"model": "llama-3-8b", "hardware": "1x1 H100-80GB", "cpu_memory_gib": 8},
    "unknown": {"model": "llama-3-8b", "hardware": "1x1 H100-80GB"},
}  # fmt: skip
OFFERED = {
    "save": {"checkpoint_saving": "by_tensor"},
    "save whole": {"checkpoint_saving": "by_tensor"},
    "load": {"weight_loading": "by_tensor"},
    "load and save": {"weight_loading": "by_tensor", "checkpoint_saving": "by_tensor"},
}
GOOD = ("fits", "comfortable")


@pytest.mark.parametrize("lacks", CRAMPED)
def test_what_is_said_to_fit_on_a_node_does_when_it_is_followed(lacks):
    found = ask(**CRAMPED[lacks])
    assert found.verdict == ("needs_info" if lacks == "unknown" else "does_not_fit")
    assert any(suggestion.fits for suggestion in found.suggestions)
    for suggestion in found.suggestions:
        again = ask(**CRAMPED[lacks] | suggestion.change).verdict
        assert suggestion.fits is (None if again == "needs_info" else again in GOOD)
    for other in (each for each in (*found.alternatives, found.next_rung, found.fastest) if each):
        asked = CRAMPED[lacks] | {"framework": other.framework}
        batch = found.next_calls[0].arguments["global_batch"]
        same = CaseArguments(**asked | {"global_batch": batch} | other.layout.model_dump(exclude_defaults=True))
        assert other.fits is (
            None if lacks == "unknown" else answer(resolve(same, allow_paths=False)).decisive_verdict in GOOD
        )


@pytest.mark.parametrize("lacks", OFFERED)
def test_another_way_of_loading_or_saving_is_offered_where_that_alone_serves(lacks):
    assert OFFERED[lacks] in [suggestion.change for suggestion in ask(**CRAMPED[lacks]).suggestions]


@pytest.mark.parametrize("lacks", ["save", "load", "offload"])
def test_the_memory_that_a_node_would_need_is_offered(lacks):
    (more,) = [s.change["cpu_memory_gib"] for s in ask(**CRAMPED[lacks]).suggestions if "cpu_memory_gib" in s.change]
    assert ask(**CRAMPED[lacks] | {"cpu_memory_gib": more}).verdict in GOOD
    assert ask(**CRAMPED[lacks] | {"cpu_memory_gib": more - 2}).verdict not in GOOD


def test_a_layout_that_the_node_serves_at_every_instant_is_found():
    """Megatron stages 230 GiB a node to save; FSDP2's script is open and the layouts of it that fit are taken."""
    found = ask(model="llama-3-70b", hardware="4x8 H100-80GB", sequence_length=8192, cpu_memory_gib=200)
    assert found.verdict in GOOD
    assert found.framework != "megatron"
    assert ask(**JOBS["70b"], framework="megatron", cpu_memory_gib=200).verdict == "does_not_fit"


def test_where_only_the_node_has_no_room_the_walk_says_nothing_of_more_gpus():
    found = ask(**CRAMPED["save"])
    assert found.estimate.verdict in GOOD
    assert "more-gpus" not in [step.id for step in found.steps]
    assert found.next_calls[0].tool == "estimate_memory"
    again = answer(resolve(CaseArguments(**found.next_calls[0].arguments), allow_paths=False))
    assert again.decisive_verdict == found.verdict


def test_changes_that_only_suffice_together_are_offered_together():
    job = {"model": "llama-3-8b", "hardware": "1 RTX-4090", "method": "lora", "sequence_length": 8192}
    offered = [suggestion.change for suggestion in ask(**job).suggestions]
    together = {"loss": "fused", "optimizer": "adamw_8bit"}
    assert together in offered
    assert {"optimizer": "adamw_8bit"} not in offered
    assert ask(**job, **together).rung in ON_THE_GPUS


@pytest.mark.parametrize("job", ["8b-1", "8b-lora"])
def test_where_the_loss_sets_the_peak_a_leaner_one_is_offered_with_what_it_saves(job):
    found = recommended(job)
    leaner = next(suggestion for suggestion in found.suggestions if "loss" in suggestion.change)
    again = answer(resolve(CaseArguments(**found.next_calls[0].arguments, **leaner.change), allow_paths=False))
    assert found.estimate.binding.phase == "loss"
    assert leaner.peak_bytes == again.peak_bytes < found.estimate.peak_bytes
    assert leaner.what.endswith(f"same layout: {format_bytes(found.estimate.peak_bytes)}")


@pytest.mark.parametrize("job", ["qwen3-moe"])
def test_where_something_else_sets_the_peak_the_loss_is_left_alone(job):
    assert [suggestion for suggestion in recommended(job).suggestions if "loss" in suggestion.change] == []


def test_known_host_memory_that_is_too_small_rules_the_offload_out():
    found = ask(**JOBS["8b-1"], cpu_memory_gib=8, nvme_gib=0)
    assert found.verdict == "does_not_fit"
    assert found.estimate.host.verdict in ("comfortable", "fits")


def test_a_host_with_little_memory_leaves_nvme_and_says_that_its_size_is_unknown():
    """Gradients of 2 bytes a parameter and four buffers of a billion fp32 elements: 30 GiB."""
    found = ask(**JOBS["8b-1"], cpu_memory_gib=40)
    assert (found.rung, found.framework, found.layout.offload_optimizer) == ("rung-3-nvme", "deepspeed", "nvme")
    assert "the layout needs NVMe space and it is unknown: give nvme_gib" in found.warnings
    assert ask(**JOBS["8b-1"], cpu_memory_gib=29).verdict == "does_not_fit"


def test_a_layout_on_nvme_says_that_the_memory_for_its_buffers_is_unknown():
    found = ask(**JOBS["8b-1"], offload_optimizer="nvme", nvme_gib=1000)
    assert "the layout needs host memory and it is unknown: give cpu_memory_gib" in found.warnings


def test_a_site_headroom_is_obeyed_and_named(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text(
        "headroom: {id: acme-room, share: 0.2}\ncap:\n- {id: acme-tensor, argument: tensor_parallel, at_most: 2}\n"
    )
    found = recommend(CaseArguments(**JOBS["70b"], rules=str(site)), allow_paths=True)
    assert found.estimate.reserved_bytes <= 0.8 * found.estimate.usable_bytes
    assert found.layout.tensor_parallel <= 2
    assert "rule:acme-room" in [known.origin for known in found.assumptions]


def test_a_site_preference_moves_the_choice(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("prefer:\n- {id: acme-no-context, when: context_parallel > 1, factor: 2}\n")
    found = recommend(CaseArguments(**JOBS["70b-megatron"], rules=str(site)), allow_paths=True)
    assert recommended("70b-megatron").layout.context_parallel == 2
    assert found.layout.context_parallel == 1


def test_a_sequence_beyond_the_models_own_is_warned_about():
    assert any("beyond" in warning for warning in ask(**{**JOBS["8b-8"], "sequence_length": 16_384}).warnings)


def test_a_request_that_no_layout_can_meet_is_refused_by_name():
    with pytest.raises(AdvisorError) as caught:
        ask(**JOBS["70b"], expert_parallel=8)
    assert caught.value.code == "illegal_layout"


def test_the_default_batch_divides_over_any_number_of_gpus():
    for gpus, expected in (("1x8", 64), ("3x8", 192), ("1x1", 8)):
        case = resolve(CaseArguments(model="llama-3-8b", hardware=f"{gpus} H100-80GB"), allow_paths=False)
        assert default_batch(case) == expected


def test_the_same_request_gets_the_same_answer():
    assert ask(**JOBS["70b"]) == recommended("70b")


def test_whoever_asks_hears_what_a_search_is_at():
    heard = []
    advisor.recommend_setup(**JOBS["8b-8"], framework="megatron", progress=heard.append)
    assert heard == ["megatron on 8 GPUs, rung-0-sharding", "megatron on 8 GPUs, rung-1-recompute"]
    advisor.recommend_setup(**JOBS["8b-lora"])
    assert len(heard) == 2


def test_whoever_asks_hears_what_a_sweep_is_at():
    heard = []
    case = {**JOBS["8b-8"], "framework": "megatron", "tensor_parallel": 2}
    swept = advisor.explore(case=case, vary={"micro_batch": [1, 2, 4]}, progress=heard.append)
    assert heard == [f"{swept.judged} legal layouts"]
