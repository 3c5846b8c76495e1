"""What each stage of a pipeline holds: its layers, the ends of the model, and copies of what another stage has.

Counts are made by hand from the models' shapes; where a module stands is read in the frameworks' code.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import phases
from advisor.estimate import estimate
from advisor.placement import Place
from advisor.timing import step_time
from tests.cases import case

LLAMA_LAYER, LLAMA_TABLE, LLAMA_WIDTH = 218_112_000, 128_256 * 4096, 4096
DEEPSEEK = {
    "model": "deepseek-v3", "hardware": "128x8 H800-80GB", "framework": "megatron", "pipeline_parallel": 16,
    "expert_parallel": 64,
}  # fmt: skip
DEEPSEEK_TABLE = 129_280 * 7168
few = settings(deadline=None, max_examples=40)


def breakdown(**arguments):
    return estimate(case(**arguments))


def amount(stage, slot):
    return sum(line.amount for line in stage.lines if line.term.slot == slot)


def at(stage, slot, phase):
    return sum(line.at(phase) for line in stage.lines if line.term.slot == slot)


def places(**arguments):
    """Each stage of a case."""
    found = case(**arguments)
    return [Place(found, found.layout, stage) for stage in range(found.layout.pipeline_parallel)]


# --- both ends of the model -------------------------------------------------------------------------------------------


def test_a_v_schedule_brings_the_head_back_to_the_stage_of_the_embedding():
    """torchtitan's pipeline_parallel.py gives rank 0 the first and the last of twice as many parts as ranks."""
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "torchtitan", "pipeline_parallel": 8}
    found = breakdown(**job, pipeline_schedule="zb_v")
    ends = 2 * LLAMA_TABLE + LLAMA_WIDTH
    assert [row.parameters for row in found.rows] == [4 * LLAMA_LAYER + ends, *[4 * LLAMA_LAYER] * 7]
    assert [row.in_flight for row in found.rows] == [8] * 8
    assert [row.peak_bytes for row in found.rows] == [stage.peak_bytes for stage in found.stages]
    assert [amount(stage, "loss.kept") > 0 for stage in found.stages] == [True] + [False] * 7
    assert found.binding.place.stage == step_time(found.case).stage == 0


def test_dualpipe_holds_the_weights_and_gradients_of_two_stages_and_the_optimizer_of_one():
    job = {"model": "llama-3-70b", "hardware": "8x8 H100-80GB", "framework": "megatron", "pipeline_parallel": 8}
    one, two = (breakdown(**job, pipeline_schedule=schedule).stages[1] for schedule in ("1f1b", "dualpipe"))
    for slot, times in {"weights.dense": 2, "gradients.layers": 2, "optimizer.dense": 1}.items():
        assert at(two, slot, phases.OPTIMIZER) == times * at(one, slot, phases.OPTIMIZER) > 0


@few
@given(pipeline=st.sampled_from([2, 4, 8]), tensor=st.sampled_from([1, 2, 4]), tokens=st.sampled_from([1024, 4096]))
def test_first_and_last_stage_of_a_uniform_model_differ_by_their_micro_batches_in_flight(pipeline, tensor, tokens):
    shapes = {"layers": 16, "hidden": 2048, "heads": 16, "ffn": 8192, "vocab": 128}
    found = breakdown(
        architecture=shapes, hardware=f"{pipeline * tensor} H100-80GB", framework="megatron", tensor_parallel=tensor,
        pipeline_parallel=pipeline, gradient_accumulation=1, sequence_length=tokens,
    )  # fmt: skip
    first, last = found.stages[0], found.stages[-1]
    head = sum(line.amount for line in last.lines if line.term.slot.startswith(("loss.", "head.")))
    assert first.by_phase[phases.FORWARD] == pytest.approx(last.by_phase[phases.FORWARD] - head, rel=1e-3)


# --- predictors of further tokens -------------------------------------------------------------------------------------


def test_megatron_builds_the_predictors_behind_the_last_stage_with_a_table_of_their_own():
    megatron = breakdown(**DEEPSEEK)
    without = {**megatron.case.model.model_dump(), "mtp_layers": 0}
    plain = estimate(megatron.case.model_copy(update={"model": type(megatron.case.model)(**without)}))
    added = [a.parameters - b.parameters for a, b in zip(megatron.stages, plain.stages, strict=True)]
    layer = megatron.case.parameters.mtp - 2 * 7168**2 - 3 * 7168
    experts = megatron.case.model.experts
    on_the_rank = layer - 3 * 7168 * experts.hidden * (experts.count - experts.count // 64) + 2 * 7168**2
    assert added[:-1] == [0] * 15
    assert added[-1] == on_the_rank + DEEPSEEK_TABLE
    assert at(megatron.stages[-1], "loss.kept", phases.FORWARD) == 2 * at(plain.stages[-1], "loss.kept", phases.FORWARD)


def test_the_predictors_table_has_a_main_gradient_and_a_share_of_the_optimizers_states():
    """Megatron Core's gpt_model.py makes one on the predictors' stage; language_module.py keeps the two in step."""
    first, *between, last = breakdown(**DEEPSEEK).stages
    assert amount(last, "gradients.embedding") == amount(first, "gradients.embedding") == 4 * DEEPSEEK_TABLE
    assert not any(amount(stage, "gradients.embedding") for stage in between)
    stepped = last.place.divided_trained + last.place.replicated_trained + 2 * DEEPSEEK_TABLE + 7168
    assert amount(last, "optimizer.dense") == 12 * stepped // 64


def test_predictors_read_the_embedding_itself_where_it_is_on_their_rank():
    """One stage has both; DualPipe puts both ends of the model on one rank, which DeepSeek-V3's report makes use of."""
    assert places(**DEEPSEEK)[-1].embeddings == 1
    assert places(**DEEPSEEK, pipeline_schedule="dualpipe")[-1].embeddings == 0
    assert places(**DEEPSEEK | {"pipeline_parallel": 1})[0].embeddings == 1


def test_a_tied_head_and_predictors_share_one_copy():
    shapes = {"layers": 8, "hidden": 1024, "heads": 8, "ffn": 4096, "vocab": 32_000, "tied": True, "mtp_layers": 1}
    first, *_, last = places(architecture=shapes, hardware="4 H100-80GB", framework="megatron", pipeline_parallel=4)
    assert first.embeddings == last.embeddings == 1
    assert last.embedding_trained == 0 < last.head_trained


# --- tables that no rank splits ---------------------------------------------------------------------------------------


def test_deepspeeds_autotp_leaves_the_embedding_whole_and_splits_a_head_of_its_own():
    """deepspeed/runtime/engine.py follows Transformers' plan: of Llama's outer modules it holds lm_head only."""
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "deepspeed", "tensor_parallel": 4}
    autotp, megatrons = (breakdown(**job, implementation=name).binding for name in ("reference", "fused"))
    norms = 65 * LLAMA_WIDTH
    matrices = 32 * LLAMA_LAYER - 64 * LLAMA_WIDTH
    assert autotp.parameters == norms + LLAMA_TABLE + (matrices + LLAMA_TABLE) // 4
    assert megatrons.parameters == norms + (matrices + 2 * LLAMA_TABLE) // 4


@pytest.mark.parametrize("framework", ["deepspeed", "fsdp2"])
def test_the_gradient_of_a_whole_table_that_the_head_shares_is_whole_as_well(framework):
    """AutoTP's _configure_gathered_column_tie_fallbacks leaves both modules on every rank."""
    job = {"model": "llama-3.2-1b", "hardware": "1x8 H100-80GB", "framework": framework, "zero_stage": 0}
    one, four = (amount(breakdown(**job, tensor_parallel=ranks).binding, "gradients.head") for ranks in (1, 4))
    assert four == pytest.approx(one, rel=1e-5)


# --- all stages together ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", ["1f1b", "zb_v", "dualpipe"])
@pytest.mark.parametrize(
    ("model", "pipeline", "copies"),
    [
        ("llama-3-8b", 8, {"1f1b": 0, "zb_v": 0, "dualpipe": 0}),
        ("qwen3-4b", 4, {"1f1b": 1, "zb_v": 1, "dualpipe": 1}),
        ("qwen3-4b", 1, {"1f1b": 0, "zb_v": 0, "dualpipe": 0}),
        ("deepseek-v3", 16, {"1f1b": 1, "zb_v": 1, "dualpipe": 0}),
        ("deepseek-v3", 1, {"1f1b": 0, "zb_v": 0, "dualpipe": 0}),
    ],
)
def test_stages_together_hold_and_train_the_model_once_and_the_copies_that_are_named(model, pipeline, copies, schedule):
    stages = places(
        model=model, hardware="64x8 H200", framework="megatron", pipeline_parallel=pipeline, pipeline_schedule=schedule
    )
    shapes, counted = stages[0].model, stages[0].case.parameters
    predictors = counted.mtp - 3 * shapes.hidden * shapes.mtp_layers  # their norms are not placed
    expected = counted.total + predictors + copies[schedule] * shapes.vocab * shapes.hidden
    assert sum(place.divided + place.replicated + place.experts for place in stages) == expected
    layers = sum(place.divided_trained + place.replicated_trained + place.experts_trained for place in stages)
    assert layers + sum(place.head_trained + place.embedding_trained for place in stages) == expected
