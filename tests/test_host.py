"""Host memory: what leaves the GPU, and what loading and saving take, counted on its node."""

import re

import pytest

import advisor
from advisor import phases
from advisor.catalog.frameworks import find_framework
from advisor.estimate import estimate
from advisor.node_memory import host
from advisor.words import memory_text
from tests.cases import case
from tests.validation import host as statements
from tests.validation.facts import OWN_FOLDER

JOB = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "deepspeed", "zero_stage": 3}
#: Its parameters: 128,256 rows of 4,096 twice, 32 layers of 218,112,000, a norm.
PARAMETERS = 2 * 128_256 * 4_096 + 32 * 218_112_000 + 4_096
SHARDED = {"framework": "torchtitan", "zero_stage": 3}


def host_bytes(**arguments):
    return estimate(case(**JOB | arguments)).node_bytes(phases.HOST)


def at(instant, **arguments):
    """CPU memory of a node at an instant."""
    found = host(estimate(case(**JOB | arguments)))
    return next(each.bytes_per_node for each in found.instants if each.instant == instant)


def test_what_public_pages_state_of_host_memory_is_met_or_says_which_fact_is_missing():
    figures = statements.run(OWN_FOLDER / "host.yaml")
    assert figures["host_within_20_percent"] == 1
    assert figures["compared"] + figures["missing_fact_named"] == figures["n"]


def test_a_statement_about_a_machine_that_disagrees_is_an_error_of_ours():
    row = {"id": "x", "kind": "", "gib": 1, "case": JOB | {"offload_optimizer": "cpu"}}
    assert statements._comparison(row | {"at_least": True}).error == 0
    assert statements._comparison(row | {"at_most": True}).error > 100


def test_an_optimizer_that_deepspeed_offloads_takes_eighteen_bytes_a_parameter_and_two_more_with_the_weights():
    """Master 4, moments 8, the gradient it steps on 4; the buffer in which micro-batches add up 2."""
    assert host_bytes(offload_optimizer="cpu") == pytest.approx(18 * PARAMETERS, rel=1e-6)
    both = host_bytes(offload_optimizer="cpu", offload_parameters="cpu")
    assert both == pytest.approx(20 * PARAMETERS, rel=1e-6)


@pytest.mark.parametrize("stage", [1, 2])
def test_below_stage_three_stepped_weights_one_gradient_a_rank_and_accumulated_ones_lie_on_the_host(stage):
    offloaded = {"zero_stage": stage, "offload_optimizer": "cpu"}
    ranks, table = 8, 128_256 * 4_096
    assert host_bytes(**offloaded) == pytest.approx(18 * PARAMETERS + ranks * 2 * table, rel=1e-6)
    several = host_bytes(**offloaded, gradient_accumulation=2)
    assert several == pytest.approx(20 * PARAMETERS + ranks * 2 * table, rel=1e-6)
    assert host_bytes(**offloaded, gradient_accumulation=4) == several


def test_gradients_that_add_up_in_a_narrow_optimizers_own_take_no_buffer():
    narrow = {"zero_stage": 2, "offload_optimizer": "cpu", "precision": "bf16"}
    assert host_bytes(**narrow, gradient_accumulation=2) == host_bytes(**narrow)


def test_adapters_below_stage_three_lie_on_the_host_alone():
    adapters = {"method": "lora", "precision": "bf16_mixed", "offload_optimizer": "cpu"}
    count = case(**JOB | adapters).adapter_parameters
    assert host_bytes(**adapters) == pytest.approx(18 * count, rel=1e-6)
    assert host_bytes(**adapters, zero_stage=2) == pytest.approx(18 * count, rel=1e-6)
    assert host_bytes(**adapters, zero_stage=2, gradient_accumulation=2) == pytest.approx(20 * count, rel=1e-6)


def test_a_quarter_of_the_optimizer_takes_a_quarter_of_the_host_memory():
    megatron = {"framework": "megatron", "zero_stage": 1, "offload_optimizer": "cpu"}
    whole = host_bytes(**megatron)
    for quarters in (1, 2, 3):
        assert host_bytes(**megatron, offload_fraction=quarters / 4) == pytest.approx(whole * quarters / 4, rel=1e-6)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_deepspeed_has_all_gradients_on_the_host_whatever_share_of_the_optimizer(share):
    offloaded = host_bytes(offload_optimizer="cpu", offload_fraction=share)
    assert offloaded == pytest.approx((16 * share + 2) * PARAMETERS, rel=1e-6)


# --- NVMe ------------------------------------------------------------------------------------------------------------

SEVENTY_B = {"model": "llama-3-70b", "offload_optimizer": "nvme"}
SUB_GROUP = 10**9  # elements


def test_states_on_nvme_leave_gradients_and_four_buffers_a_rank_in_cpu_memory():
    gradients = 2 * case(**JOB | SEVENTY_B).parameters.total
    assert host_bytes(**SEVENTY_B) == pytest.approx(gradients + 8 * 4 * 4 * SUB_GROUP, rel=1e-6)
    spread = host_bytes(**SEVENTY_B, hardware="16x8 H100-80GB")
    assert spread == pytest.approx((gradients + 4 * 4 * gradients / 2) / 16, rel=1e-6)  # a rank owns 0.55 B


def test_weights_on_nvme_leave_a_billion_and_pass_through_buffers():
    """What stays, a sub-group on its way back, five buffers of a hundred million; a small share stays as it is."""
    both = SEVENTY_B | {"offload_parameters": "nvme"}
    assert host_bytes(**both) - host_bytes(**SEVENTY_B) == 8 * 2 * (2 * SUB_GROUP + 5 * 10**8)
    many = {"hardware": "16x8 H100-80GB"}
    kept = 2 * case(**JOB | SEVENTY_B).parameters.total / 16
    assert host_bytes(**both, **many) - host_bytes(**SEVENTY_B, **many) == pytest.approx(
        kept + 8 * 2 * 5 * 10**8, rel=1e-6
    )


def test_a_node_with_little_memory_cannot_offload_to_nvme():
    job = JOB | SEVENTY_B | {"recompute": "full", "nvme_gib": 4000}
    assert advisor.estimate_memory(**job, cpu_memory_gib=64).host.verdict == "does_not_fit"
    assert advisor.estimate_memory(**job).host.verdict == "needs_info"
    assert advisor.estimate_memory(**job, cpu_memory_gib=1000).host.verdict == "comfortable"


@pytest.mark.parametrize(("memory", "rung"), [(128, None), (512, "rung-3-nvme")])
def test_a_recommendation_of_nvme_heeds_the_memory_that_its_buffers_take(memory, rung):
    job = {"model": "llama-3-70b", "hardware": "1x8 A100-40GB", "framework": "deepspeed", "nvme_gib": 4000}
    found = advisor.recommend_setup(**job, cpu_memory_gib=memory)
    if rung is None:
        assert found.verdict == "does_not_fit"
    else:
        assert (found.verdict, found.rung) == ("fits", rung)


def test_nothing_is_on_the_host_where_nothing_is_offloaded():
    assert host_bytes() == 0


# --- loading and saving ----------------------------------------------------------------------------------------------


def test_eight_ranks_that_each_load_the_whole_model_need_eight_times_what_one_needs():
    assert at("load", weight_loading="one_rank") == 2 * PARAMETERS
    assert at("load", weight_loading="every_rank") == 8 * 2 * PARAMETERS
    assert at("load", weight_loading="every_rank_fp32") == 8 * 4 * PARAMETERS


def test_offloaded_weights_that_each_rank_loads_for_itself_add_up_to_the_model():
    largest = 128_256 * 4_096  # elements of the embedding table, which its ranks read a part of each
    offloaded = SHARDED | {"offload_parameters": "cpu", "offload_optimizer": "cpu"}
    assert at("load", **offloaded) == pytest.approx(4 * (PARAMETERS + largest), rel=1e-9)
    assert 2 * at("load", **offloaded, hardware="2x8 H100-80GB") == pytest.approx(at("load", **offloaded), rel=1e-9)
    assert at("load", **SHARDED) == 4 * largest


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_staged_parts_add_up_to_weights_and_states_whatever_the_layout(nodes):
    staged = {"framework": "megatron", "zero_stage": 1, "hardware": f"{nodes}x8 H100-80GB"}
    assert nodes * at("save", **staged) == pytest.approx(14 * PARAMETERS, rel=1e-6)
    assert nodes * at("save", **staged, tensor_parallel=8) == pytest.approx(14 * PARAMETERS, rel=1e-3)


@pytest.mark.parametrize(("way", "size"), [("weights", 4), ("in_turn", 8), ("whole", 12)])
def test_one_rank_that_gathers_holds_so_many_bytes_a_parameter(way, size):
    assert at("save", framework="fsdp2", checkpoint_saving=way) == size * PARAMETERS


def test_deepspeed_copies_a_flat_group_of_each_rank_at_a_time_and_before_stage_three_the_weights():
    assert at("save") == 8 * 4 * 10**9  # a rank owns 1.004 B elements in groups of a billion
    assert at("save", zero_stage=1) == pytest.approx(4 * PARAMETERS, rel=1e-9)
    assert at("save", zero_stage=1, hardware="8x8 H100-80GB") == 2 * PARAMETERS


def test_what_is_offloaded_stays_while_a_checkpoint_is_saved():
    offloaded = {"offload_optimizer": "cpu"}
    assert at("save", **offloaded) == at("step", **offloaded) > 0
    assert at("save", **offloaded, zero_stage=2) == at("step", **offloaded, zero_stage=2) + 2 * PARAMETERS


def test_adapters_are_saved_alone_and_a_quantised_base_is_read_a_weight_after_the_other():
    one = {"framework": "single", "zero_stage": 0, "hardware": "1 H100-80GB"}
    adapters = case(**JOB | one, method="lora").adapter_parameters
    assert at("save", **one, method="lora") == 2 * adapters
    assert at("load", **one, method="lora") == 2 * PARAMETERS
    assert at("load", **one, method="qlora") < PARAMETERS


def test_the_verdict_rests_on_the_instant_that_needs_most_and_names_it():
    answer = advisor.estimate_memory(**JOB | {"framework": "megatron", "zero_stage": 1}, cpu_memory_gib=100)
    assert (answer.host.verdict, answer.host.binding) == ("does_not_fit", "save")
    assert "to save; does not fit, the save decides" in memory_text(answer)
    enough = advisor.estimate_memory(**JOB | {"framework": "megatron", "zero_stage": 1}, cpu_memory_gib=120)
    assert enough.host.verdict == "fits"


def test_a_way_that_is_only_usual_decides_nothing_and_a_warning_says_what_it_would_take():
    job = JOB | {"framework": "fsdp2", "cpu_memory_gib": 200}
    assumed = advisor.estimate_memory(**job)
    assert (assumed.host.verdict, assumed.host.binding) == ("comfortable", "step")
    (said,) = [each for each in assumed.warnings if "weight_loading" in each]
    assert "239.3 GiB of CPU memory to load with the usual weight_loading=every_rank, and has 200.0 GiB" in said
    given = advisor.estimate_memory(**job, weight_loading="every_rank")
    assert (given.host.verdict, given.host.binding) == ("does_not_fit", "load")
    (beyond,) = [each for each in given.warnings if "weight_loading" in each]
    assert "has 200.0 GiB of CPU memory and needs 239.3 GiB to load by weight_loading=every_rank" in beyond
    assert "another weight_loading (by_tensor needs least) or a larger cpu_memory_gib" in beyond


def test_memory_that_is_unknown_decides_only_where_the_layout_offloads():
    assert advisor.estimate_memory(**JOB).host.verdict == "comfortable"
    assert advisor.estimate_memory(**JOB, offload_optimizer="cpu").host.verdict == "needs_info"


def test_how_weights_are_loaded_and_checkpoints_saved_is_said_once_with_its_origin():
    def said(**arguments):
        answer = advisor.estimate_memory(**JOB | arguments)
        return [
            (each.value, each.origin)
            for each in answer.assumptions
            if each.argument in ("weight_loading", "checkpoint_saving")
        ]

    assert said() == [("by_tensor", "default"), ("by_group", "catalog")]
    assert said(zero_stage=1) == [("every_rank", "default"), ("by_group", "catalog")]
    assert said(checkpoint_saving="weights") == [("weights", "given"), ("by_tensor", "default")]


def test_an_article_knows_neither_loading_nor_saving():
    answer = advisor.estimate_memory(model="llama-3-8b", hardware="1x8 H100-80GB", profile="article-m3")
    assert [each.instant for each in answer.host.instants] == ["step"]
    assert not {"weight_loading", "checkpoint_saving"} & {each.argument for each in answer.assumptions}


def test_an_instant_shows_its_formula_with_the_numbers_that_give_its_bytes():
    load, _, save = advisor.estimate_memory(**JOB | {"framework": "ddp", "zero_stage": 0}).host.instants
    (loaded,), (saved,) = load.parts, save.parts
    assert (loaded.formula, loaded.substituted) == ("R_n · K_w · w_w", "8 · 8,030,261,248 · 4")
    assert (saved.formula, saved.substituted) == ("K_s · w_K", "8,030,261,248 · 4")
    assert load.bytes_per_node == 8 * save.bytes_per_node == 8 * 4 * PARAMETERS


OFFLOADED = {"offload_optimizer": "cpu", "offload_parameters": "cpu"}


@pytest.mark.parametrize(
    "arguments",
    [
        OFFLOADED,
        OFFLOADED | {"offload_fraction": 0.5},
        {"offload_optimizer": "nvme"},
        {"zero_stage": 2, "offload_optimizer": "cpu", "gradient_accumulation": 2},
        {"framework": "megatron", "zero_stage": 1, "offload_optimizer": "cpu", "pipeline_parallel": 4},
    ],
)
def test_the_parts_of_each_instant_add_up_to_it(arguments):
    for each in advisor.estimate_memory(**JOB | arguments).host.instants:
        assert sum(part.bytes for part in each.parts) == each.bytes_per_node > 0


def test_the_parts_of_a_step_say_what_fills_the_node():
    _, step, save = advisor.estimate_memory(**JOB | OFFLOADED).host.instants
    assert [part.slot for part in step.parts] == ["host.optimizer", "host.parameters", "host.gradients"]
    assert step.parts[0].substituted.startswith("8 · (")
    assert [part.slot for part in save.parts[1:]] == [part.slot for part in step.parts]
    said = memory_text(advisor.estimate_memory(**JOB | OFFLOADED))
    assert "There in a step: optimizer 119.7 GiB, parameters 15.0 GiB, gradients 15.0 GiB." in said
    assert "host.optimizer = n · (" in memory_text(advisor.estimate_memory(**JOB | OFFLOADED), full=True)


# --- both verdicts ---------------------------------------------------------------------------------------------------

STAGED = JOB | {"framework": "megatron", "zero_stage": 1, "tensor_parallel": 8}


def first_line(**arguments):
    return memory_text(advisor.estimate_memory(**arguments)).partition("\n")[0]


def test_the_first_line_says_both_verdicts_where_the_nodes_is_worse():
    said = first_line(**STAGED, cpu_memory_gib=64)
    assert said.endswith("on the GPU, but the host DOES NOT FIT: 104.7 GiB of 64.0 GiB, the save decides.")
    unknown = first_line(**JOB | OFFLOADED)
    assert unknown.endswith("NEEDS INFO of the host: whether the node has it is unknown: give cpu_memory_gib.")
    nvme = JOB | {"offload_optimizer": "nvme", "cpu_memory_gib": 2000, "nvme_gib": 80}
    assert first_line(**nvme).endswith("the host DOES NOT FIT: 119.7 GiB of 80.0 GiB NVMe.")
    assert "host" not in first_line(**STAGED, cpu_memory_gib=1000)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (STAGED, ["104.7 GiB to save by checkpoint_saving=staged", "another checkpoint_saving", "more nodes"]),
        (JOB | {"weight_loading": "every_rank"}, ["119.7 GiB to load by weight_loading=every_rank", "(by_tensor"]),
        (JOB | OFFLOADED, ["149.6 GiB in a step", "less offload or more nodes or a larger cpu_memory_gib"]),
    ],
)
def test_a_warning_names_the_instant_that_a_node_does_not_serve_and_what_would_change_it(arguments, words):
    answer = advisor.estimate_memory(**arguments, cpu_memory_gib=64)
    assert answer.decisive_verdict == "does_not_fit"
    assert all(each in answer.warnings[0] for each in words)
    assert answer.next_calls[0].why == "find a layout that fits"


def test_a_node_without_headroom_is_warned_about_too():
    answer = advisor.estimate_memory(**STAGED, cpu_memory_gib=106)
    assert answer.decisive_verdict == "tight"
    assert answer.warnings[0].startswith("a node has 106.0 GiB of CPU memory and needs 104.7 GiB to save")
    assert "the host is TIGHT: 104.7 GiB of 106.0 GiB, the save decides." in memory_text(answer)
    assert answer.warnings != advisor.estimate_memory(**STAGED, cpu_memory_gib=120).warnings


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("Megatron", ["megatron"]),
        ("torchtitan and Megatron-FSDP", ["torchtitan", "megatron_fsdp"]),
        ("DeepSpeed", ["deepspeed"]),
        ("FSDP", ["fsdp1", "fsdp2"]),
        ("DDP and one GPU", ["ddp", "single"]),
    ],
)
def test_the_explanation_names_the_ways_that_the_catalog_holds(row, names):
    (loads, saves) = next(rest for first, *rest in advisor.explain(id="host-memory").table if first == row)
    for framework in map(find_framework, names):
        assert set(framework.weight_loading.by_stage.values()) <= set(re.findall(r"\w+", loads))
        assert framework.checkpoint_saving.by_stage[max(framework.checkpoint_saving.by_stage)] in saves


def test_a_recommendation_heeds_the_host_without_offload_too():
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "megatron"}
    found = advisor.recommend_setup(**job, cpu_memory_gib=100)
    assert (found.estimate.verdict, found.verdict) == ("comfortable", "does_not_fit")
    assert advisor.recommend_setup(**job).verdict == "comfortable"
    by_tensor = advisor.recommend_setup(**job, cpu_memory_gib=100, checkpoint_saving="by_tensor")
    assert by_tensor.verdict == "comfortable"
