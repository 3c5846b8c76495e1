"""What people who tried to break it found: each fault once, as the property that it broke."""

import pytest

import advisor
from advisor import phases
from advisor.errors import AdvisorError
from advisor.estimate import estimate
from tests.cases import case

JOB = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"}


@pytest.mark.parametrize("every", [2, 17, 32])
def test_a_sweep_keeps_every_kth_layer_as_an_estimate_does(every):
    job = {**JOB, "recompute": "every_k", "recompute_every": every}
    swept = advisor.explore(case=job, vary={"micro_batch": [8]})
    peak = dict(zip(swept.columns, swept.rows[0], strict=True))["peak_bytes"]
    assert peak == advisor.estimate_memory(**job, micro_batch=8).peak_bytes


@pytest.mark.parametrize("length", [200_000_000, 300_000_000])
def test_a_job_of_exabytes_does_not_wrap_around(length):
    answer = advisor.estimate_memory(
        model="gpt2", hardware="64x1 RTX-4090", pipeline_parallel=8, zero_stage=1, attention="eager",
        sequence_length=length,
    )  # fmt: skip
    assert answer.verdict == "does_not_fit"
    assert min(stage.peak_bytes for stage in answer.stages) > 0
    assert max(stage.peak_bytes for stage in answer.stages) == pytest.approx(answer.peak_bytes, rel=1e-12)


@pytest.mark.parametrize("argument", ["cpu_memory_gib", "nvme_gib"])
def test_the_largest_host_that_is_accepted_is_computed(argument):
    assert advisor.estimate_memory(**JOB, **{argument: 1e6}).verdict


def test_a_batch_of_a_billion_has_a_micro_batch_or_is_refused():
    job = {"model": "llama-3-8b", "hardware": "1x8 B200", "global_batch": 10**9}
    with pytest.raises(AdvisorError, match="at most 1,000,000") as refused:
        advisor.find_limit(case=job, of="micro_batch")
    assert refused.value.pointer.endswith("/global_batch")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("recommend_setup", JOB),
        ("explore", {"case": JOB, "vary": {"micro_batch": [1, 2]}}),
        ("find_limit", {"case": JOB, "of": "micro_batch"}),
    ],
)
def test_a_measured_peak_speaks_of_one_layout(tool, arguments):
    job = {**arguments.get("case", arguments), "measured_peak_gib": 79}
    asked = {**arguments, "case": job} if "case" in arguments else job
    with pytest.raises(AdvisorError, match="peak of one layout"):
        getattr(advisor, tool)(**asked)


@pytest.mark.parametrize("more", [{}, {"cpu_memory_gib": 0.001}])
def test_pieces_that_do_not_divide_the_layers_are_not_recommended(more):
    job = {"model": "llama-3-70b", "hardware": "64x8 H100-80GB", "framework": "megatron", "virtual_stages": 8, **more}
    found = advisor.recommend_setup(**job, headroom=0.899)
    assert advisor.estimate_memory(**{**job, **found.layout.model_dump()}).layout == found.layout


def test_another_frameworks_layout_can_be_asked_for():
    job = {"model": "llama-3-70b", "hardware": "4x8 H100-80GB", "sequence_length": 8192}
    for other in advisor.recommend_setup(**job).alternatives:
        again = advisor.estimate_memory(**{**job, "framework": other.framework, **other.layout.model_dump()})
        assert again.peak_bytes == other.peak_bytes


def test_a_frozen_head_has_no_gradient_in_a_fused_loss():
    job = {"model": "qwen2.5-32b", "hardware": "1 RTX-4090", "method": "qlora", "recompute": "full", "loss": "fused"}
    kept = [
        estimate(case(**job, **more)).binding.held(["loss.kept"], phases.FORWARD)
        for more in ({"lora_modules_to_save": ["lm_head"]}, {})
    ]
    assert kept[0] - kept[1] == 152_064 * 5_120 * 2


def test_devices_that_are_not_built_with_so_many_gpus_in_a_node_are_passed_over():
    job = {"model": "llama-3-70b", "hardware": "1x8 H100-80GB", "sequence_length": 8192}
    assert advisor.find_limit(case=job, of="device").value


def test_the_fewest_gpus_are_found_between_powers_of_two():
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "sequence_length": 8192}
    assert advisor.find_limit(case=job, of="gpus").value == 3


def test_cards_without_bf16_and_flash_attention_are_told():
    assert any("bf16 tensor cores" in each for each in advisor.estimate_memory(model="gpt2", hardware="1 T4").warnings)


def test_an_empty_list_is_nothing_only_where_a_list_may_stand():
    assert advisor.estimate_memory(**JOB, recompute_modules=[]).verdict
    with pytest.raises(AdvisorError) as refused:
        advisor.list_catalog(kind=[])
    assert (refused.value.code, refused.value.pointer) == ("invalid_value", "/kind")
