"""Memory on the ranks of a cluster: tensor, sequence, context and expert parallel; pipelines are in test_stages.

Published figures are named with their source; the rest follows from what Megatron Core and FSDP2 do in their code.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor import phases
from advisor.answer import answer
from advisor.estimate import estimate
from advisor.units import GB, as_gib
from tests.cases import case
from tests.validation import measured
from tests.validation.facts import OWN_FOLDER
from tests.validation.measured_ladder import PUBLISHED_BASE, STEPS, ladder
from tests.validation.measured_predictions import after_first_iteration

LLAMA_70B = {
    "model": "llama-3-70b", "hardware": "4x8 H100-80GB", "framework": "megatron", "sequence_length": 4096,
    "tensor_parallel": 4, "pipeline_parallel": 4, "global_batch": 32,
}  # fmt: skip
#: Megatron-LM's test gpt3_7b at d98e8a64: its own GPT, whose dropout of a tenth stands.
GPT_7B = {
    "hf_config": {
        "model_type": "gpt2", "vocab_size": 131072, "num_hidden_layers": 32, "hidden_size": 4096,
        "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 16384,
        "tie_word_embeddings": False, "max_position_embeddings": 8192, "hidden_act": "gelu",
    },
    "hardware": "1x8 H100-80GB", "framework": "megatron", "sequence_length": 8192, "global_batch": 8,
}  # fmt: skip
MOE = {
    "model": "qwen3-30b-a3b", "hardware": "2x8 H100-80GB", "framework": "megatron", "tensor_parallel": 2,
    "expert_parallel": 4,
}  # fmt: skip
few = settings(deadline=None, max_examples=40)


def breakdown(**arguments):
    return estimate(case(**arguments))


def amounts(stage):
    """Bytes of each slot, once, summed over the groups of layers."""
    found = {}
    for line in stage.lines:
        found[line.term.slot] = found.get(line.term.slot, 0) + line.amount
    return found


def at(stage, slot, phase):
    return sum(line.at(phase) for line in stage.lines if line.term.slot == slot)


# --- published figures ------------------------------------------------------------------------------------------------


def test_published_measurements_of_clusters_are_met():
    figures = measured.run(OWN_FOLDER / "measured.json", rows="cluster")
    assert figures["n"] == 312
    assert figures["a_grade_predicted"] >= 0.80
    assert figures["known_median_error"] <= 0.05
    assert figures["known_p90_error"] <= 0.15


@pytest.mark.parametrize(
    ("layout", "published"),
    [
        ({"tensor_parallel": 4, "micro_batch": 2}, 53.2),
        ({"pipeline_parallel": 4, "virtual_stages": 8}, 56.6),
    ],
)
def test_the_last_rank_of_megatrons_own_7b_test_needs_what_its_golden_values_say(layout, published):
    last = breakdown(**GPT_7B, **layout, sequence_parallel=False).stages[-1]
    assert as_gib(last.peak_bytes) == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize("step", STEPS)
def test_each_step_of_megatron_bridges_ladder_saves_what_was_published(step):
    """After the first step, when Adam's moments first exist: the base on rank 0, the others on their line's stage."""
    change, published, stage = STEPS[step]
    before, after = ladder({}).stages[0], ladder(change).stages[stage]
    saved = (after_first_iteration(before) - after_first_iteration(after)) / GB
    assert saved == pytest.approx(PUBLISHED_BASE - published, rel=0.15)


def test_one_offset_explains_every_figure_of_megatron_bridges_ladder():
    lines = [({}, PUBLISHED_BASE, 0), *STEPS.values()]
    short = [figure - after_first_iteration(ladder(change).stages[stage]) / GB for change, figure, stage in lines]
    assert all(0.3 < gap < 1.0 for gap in short), short


@pytest.mark.parametrize(
    ("model", "module", "slots"),
    [
        ("llama-3-8b", "layernorm", set()),
        ("llama-3-8b", "mlp", {"ffn.input", "ffn.up"}),
        ("qwen3-30b-a3b", "layernorm", {"moe.input"}),
        ("deepseek-v2-lite", "layernorm", {"attention.input", "moe.input"}),
    ],
)
def test_megatron_recomputes_a_norm_only_where_it_is_a_module_of_its_own(model, module, slots):
    """Megatron Core's gpt_layer_specs: a norm is the identity where the linear layer after it takes it in."""
    job = {"model": model, "hardware": "1x8 H200", "framework": "megatron", "tensor_parallel": 2}
    whole = breakdown(**job).stages[0]
    less = breakdown(**job, recompute="modules", recompute_modules=[module]).stages[0]
    held = {slot for slot in amounts(whole) if at(whole, slot, phases.FORWARD) and not slot.startswith("working")}
    assert {slot for slot in held if not at(less, slot, phases.FORWARD)} - {"ffn.activation"} == slots


@pytest.mark.parametrize(
    ("change", "published"),
    [({}, 58.8), ({"virtual_stages": 10}, 60.2), ({"pipeline_parallel": 8}, 53.2), ({"tensor_parallel": 8}, 50.2)],
)
def test_the_first_optimizer_step_of_an_fp8_recipe_needs_what_megatron_bridge_printed(change, published):
    assert after_first_iteration(ladder(change).stages[0]) / GB == pytest.approx(published, rel=0.035)


# --- who divides what -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("nodes", "said"), [(1, True), (2, False)])
def test_an_answer_says_when_a_zero_stage_divides_nothing_of_the_experts(nodes, said):
    """Expert-data parallel is world / (pp ep etp): 8 / (1 8 1) leaves one rank."""
    job = {"model": "qwen3-30b-a3b", "hardware": f"{nodes}x8 H100-80GB", "framework": "megatron", "expert_parallel": 8}
    warnings = [text for text in answer(case(**job)).warnings if "divides nothing of the routed experts" in text]
    assert len(warnings) == said
    assert all("60.8 GiB" in text and "8 GPUs / (pipeline 1 x expert 8 x expert tensor 1)" in text for text in warnings)


def test_megatron_and_torchtitan_split_the_logits_and_fsdp2_gathers_them():
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "tensor_parallel": 4}
    megatron, titan, fsdp2 = (
        amounts(breakdown(**job, framework=name).binding)["loss.kept"] for name in ("megatron", "torchtitan", "fsdp2")
    )
    assert megatron * 4 == titan * 4 == fsdp2


def test_fsdp2_keeps_the_whole_embedding_table_on_every_tensor_parallel_rank():
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "tensor_parallel": 4}
    titan, fsdp2 = (breakdown(**job, framework=name) for name in ("torchtitan", "fsdp2"))
    table = fsdp2.case.model.vocab * fsdp2.case.model.hidden
    assert fsdp2.binding.parameters - titan.binding.parameters == table * 3 // 4


def test_gradients_without_sync_are_whole_until_the_last_backward_pass_frees_them_layer_by_layer():
    job = {"model": "llama-3-8b", "hardware": "1x8 H200", "framework": "fsdp2", "gradient_accumulation": 4}
    stage = breakdown(**job, gradient_sync="last").binding
    whole = at(stage, "gradients.unsynced", phases.LOSS)
    assert whole == 4 * stage.place.case.parameters.total
    assert at(stage, "gradients.layers", phases.LOSS) == 0
    assert at(stage, "gradients.unsynced", phases.FIRST_FFN) == pytest.approx(whole / 32)
    assert at(stage, "gradients.unsynced", phases.EMBEDDING) == 0


def test_expert_tensor_parallel_cuts_the_experts_weights_and_gathers_their_tokens():
    """Megatron's token_dispatcher all-gathers tokens over the expert-tensor group: twice the tokens, half as wide."""
    one, two = (amounts(breakdown(**MOE, expert_tensor_parallel=ranks).binding) for ranks in (1, 2))
    assert two["weights.experts"] * 2 == one["weights.experts"]
    assert (two["moe.up"], two["moe.activation"]) == (one["moe.up"], one["moe.activation"])
    assert two["moe.dispatched"] == 2 * one["moe.dispatched"]
    assert two["attention.qkv"] == one["attention.qkv"]


def test_an_expert_without_a_gate_keeps_one_product_the_less():
    shapes = {
        "layers": 4, "hidden": 512, "heads": 8, "vocab": 50304, "experts": 8, "top_k": 2, "expert_ffn": 2048,
    }  # fmt: skip
    gated, plain = (
        amounts(
            breakdown(architecture=shapes | {"gated": gate}, **{k: v for k, v in MOE.items() if k != "model"}).binding
        )
        for gate in (True, False)
    )
    assert gated["moe.up"] == 2 * plain["moe.up"]
    assert gated["moe.activation"] == plain["moe.activation"]


def test_megatrons_adapters_keep_the_gathered_input_of_q_k_v_and_of_gate_and_up():
    """Megatron-Bridge's memory-tuning page: each eligible layer retains the whole gathered input until its backward."""
    job = {"model": "qwen3-8b", "hardware": "1x8 H100-80GB", "framework": "megatron", "tensor_parallel": 2}
    divided, whole = (
        amounts(breakdown(**job, method="lora", sequence_parallel=sequence).binding) for sequence in (True, False)
    )
    for slot in ("attention.input", "ffn.input"):
        assert divided[slot] == whole[slot]
    assert divided["norms.kept"] * 2 == whole["norms.kept"]


def test_distributed_checkpoints_divide_the_kept_inputs_as_sequence_parallel_does():
    job = LLAMA_70B | {"recompute": "full"}
    whole, distributed, sequence = (
        amounts(breakdown(**job, **choice).binding)["checkpoint.input"]
        for choice in (
            {"sequence_parallel": False},
            {"sequence_parallel": False, "distribute_checkpoints": True},
            {"sequence_parallel": True},
        )
    )
    assert whole == 4 * distributed == 4 * sequence


# --- kernels and precisions -------------------------------------------------------------------------------------------


def test_megatrons_unfused_attention_keeps_bf16_probabilities_and_what_dropout_adds():
    job = GPT_7B | {"attention": "eager", "tensor_parallel": 4}
    config = job["hf_config"] | {"attention_dropout": 0.0, "attn_pdrop": 0.0}
    dropped, plain = (
        amounts(breakdown(**job | {"hf_config": shapes}).binding) for shapes in (job["hf_config"], config)
    )
    scores = 8192 * 8192 * 32 // 4
    assert plain["attention.core"] == 2 * scores
    assert dropped["attention.core"] == (2 + 1 + 2) * scores


def test_fp8_keeps_the_inputs_of_matrices_in_one_byte_and_nothing_else():
    bf16, fp8 = (
        amounts(breakdown(**LLAMA_70B, precision=precision).binding) for precision in ("bf16_mixed", "fp8_mixed")
    )
    halved = {"attention.input", "ffn.input", "ffn.activation"}
    assert {slot for slot in bf16 if slot in phases.LAYER_SLOTS and fp8[slot] * 2 == bf16[slot]} == halved
    assert fp8["attention.qkv"] == bf16["attention.qkv"]
    assert fp8["attention.output_copy"] * 2 == fp8["attention.output"]


def test_bf16_gradients_are_copied_to_fp32_for_the_step_only():
    stage = breakdown(**LLAMA_70B, gradient_dtype="bf16").binding
    share = amounts(stage)["optimizer.dense"] / 3  # an fp32 copy beside master and two moments
    assert at(stage, "optimizer.gradient_copy", phases.OPTIMIZER) == pytest.approx(share)
    assert at(stage, "optimizer.gradient_copy", phases.LOSS) == 0


def test_an_fp8_matrix_is_kept_transposed_as_well_before_blackwell():
    job = LLAMA_70B | {"precision": "fp8_weights"}
    hopper, blackwell = (
        amounts(breakdown(**job | {"hardware": f"4x8 {device}"}).binding)["weights.dense"]
        for device in ("H100-80GB", "B200-180GB")
    )
    stage = breakdown(**job).binding.place
    assert hopper - blackwell == stage.span(stage.tables.divided) // 4


def test_stepped_fp8_matrices_pass_through_bf16_all_at_once():
    stage = breakdown(**LLAMA_70B, precision="fp8_weights").binding
    matrices = stage.place.span(stage.place.tables.divided) // 4 // stage.place.shard_ranks
    assert at(stage, "optimizer.weight_copy", phases.OPTIMIZER) == 2 * matrices
    assert at(stage, "optimizer.weight_copy", phases.FORWARD) == 0
    assert "optimizer.weight_copy" not in amounts(breakdown(**LLAMA_70B).binding)


@pytest.mark.parametrize(("gradient_dtype", "gradient", "states"), [(None, 4, 6), ("bf16", 2, 8)])
def test_bf16_moments_beside_fp32_gradients_go_with_half_a_master_and_beside_bf16_ones_with_a_whole(
    gradient_dtype, gradient, states
):
    """Megatron-LM's optimizer_config keeps remainders unless an fp8 recipe is named, as Megatron-Bridge has it."""
    plain = amounts(breakdown(**LLAMA_70B, precision="bf16_mixed").binding)
    aware = amounts(breakdown(**LLAMA_70B, precision="bf16_moments", gradient_dtype=gradient_dtype).binding)
    assert aware["optimizer.dense"] * 12 == pytest.approx(plain["optimizer.dense"] * states)
    assert aware["gradients.layers"] * 4 == plain["gradients.layers"] * gradient


@pytest.mark.parametrize(
    ("precision", "plain", "halved"),
    [
        ("fp8_compact", "fp8_weights", {"ffn.up", "moe.up"}),
        ("bf16_compact", "bf16_mixed", {"ffn.up", "moe.up", "moe.dispatched"}),
    ],
)
def test_what_makers_keep_in_fp8_takes_half(precision, plain, halved):
    job = {"model": "deepseek-v3", "hardware": "128x8 H800-80GB", "pipeline_parallel": 16, "expert_parallel": 64}
    compact, whole = (
        amounts(breakdown(**job, framework="megatron", precision=name).stages[1]) for name in (precision, plain)
    )
    left = {slot: compact[slot] / whole[slot] for slot in phases.LAYER_SLOTS if whole.get(slot)}
    assert {slot for slot, share in left.items() if share == pytest.approx(1 / 2)} == halved
    assert left["moe.shared"] == pytest.approx(2 / 3)


def test_deepseek_keeps_attentions_output_once_in_twelve_bits_where_fp8_keeps_it_twice():
    job = {"model": "deepseek-v3", "hardware": "128x8 H800-80GB", "pipeline_parallel": 16, "expert_parallel": 64}
    once, twice = (
        amounts(breakdown(**job, framework="megatron", precision=name).stages[1])
        for name in ("fp8_compact", "fp8_weights")
    )
    assert once["attention.output"] == twice["attention.output"] * 3 // 4
    assert (once["attention.output_copy"], twice["attention.output_copy"] > 0) == (0, True)


# --- all ranks together -----------------------------------------------------------------------------------------------


@few
@given(
    experts=st.sampled_from([1, 2, 4, 8]), expert_tensor=st.sampled_from([1, 2]), pipeline=st.sampled_from([1, 2, 4]),
)  # fmt: skip
def test_the_ranks_together_hold_the_experts_once(experts, expert_tensor, pipeline):
    found = breakdown(
        model="qwen3-30b-a3b", hardware="8x8 H100-80GB", framework="megatron", tensor_parallel=2, zero_stage=1,
        expert_parallel=experts, expert_tensor_parallel=expert_tensor, pipeline_parallel=pipeline,
    )  # fmt: skip
    ranks = 64 // pipeline
    held = ranks * sum(amounts(stage)["optimizer.experts"] for stage in found.stages)
    assert held == pytest.approx(12 * found.case.parameters.experts, rel=1e-6)


@few
@given(
    dimension=st.sampled_from(["tensor_parallel", "pipeline_parallel", "expert_parallel"]),
    ranks=st.sampled_from([1, 2, 4]),
)
def test_twice_the_ranks_of_a_dimension_never_raise_the_weights_of_the_heaviest_rank(dimension, ranks):
    job = {"model": "qwen3-30b-a3b", "hardware": "8x8 H100-80GB", "framework": "megatron"}
    less, more = (breakdown(**job, **{dimension: count}) for count in (ranks, 2 * ranks))
    assert max(s.parameters for s in more.stages) <= max(s.parameters for s in less.stages)


# --- DeepSpeed's optimizers -------------------------------------------------------------------------------------------

#: BigScience's trials for BLOOM (chronicles-prequel.md): six and ten layers of 14336 on one node, ZeRO-1 in fp16.
BLOOM_LAYERS = {
    "architecture": {"layers": 6, "hidden": 14336, "heads": 64, "ffn": 57344, "vocab": 250880, "gated": False},
    "hardware": "1x8 A100-80GB", "framework": "deepspeed", "implementation": "fused", "precision": "fp16_mixed",
    "attention": "eager", "tensor_parallel": 8, "zero_stage": 1, "recompute": "full", "sequence_length": 2048,
    "gradient_accumulation": 8,
}  # fmt: skip


def test_deepspeeds_step_flattens_a_ranks_gradients_and_copies_them_to_fp32():
    """Published by nvidia-smi: 54 and 80 GB, whatever else it counts; 16 bytes a parameter would be 20 GB apart."""
    four_more = BLOOM_LAYERS["architecture"] | {"layers": 10}
    six, ten = (
        breakdown(**BLOOM_LAYERS | {"architecture": shapes}).binding
        for shapes in (BLOOM_LAYERS["architecture"], four_more)
    )
    assert {six.peak_phase, ten.peak_phase} == {phases.OPTIMIZER}
    assert as_gib(ten.peak_bytes - six.peak_bytes) == pytest.approx(80 - 54, rel=0.05)


def test_megatrons_modules_under_deepspeed_split_the_logits_and_autotp_gathers_them():
    megatron, autotp = (
        amounts(breakdown(**BLOOM_LAYERS | {"implementation": name}).binding)["loss.kept"]
        for name in ("fused", "reference")
    )
    assert autotp == 8 * megatron


def test_zero_3_copies_gradients_a_sub_group_at_a_time():
    job = {"model": "llama-3-70b", "hardware": "2x8 H200", "framework": "deepspeed", "recompute": "full"}
    two, three = (breakdown(**job, zero_stage=stage).binding for stage in (2, 3))
    share = two.place.case.parameters.total / 16
    assert at(two, "optimizer.gradient_copy", phases.OPTIMIZER) == pytest.approx(6 * share, rel=1e-3)
    assert at(three, "optimizer.gradient_copy", phases.OPTIMIZER) == 6 * 10**9


def test_the_bf16_optimizer_keeps_gradients_in_both_widths_until_a_stage_divides_them():
    job = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "deepspeed", "gradient_dtype": "fp32"}
    one, two = (amounts(breakdown(**job, zero_stage=stage).binding)["gradients.layers"] for stage in (1, 2))
    assert one * 4 == pytest.approx(two * 8 * 6)


# --- long sequences ---------------------------------------------------------------------------------------------------

LONG = {
    "model": "llama-3-70b", "hardware": "8x8 H100-80GB", "framework": "deepspeed", "context_parallel": 64,
    "sequence_length": "10M", "recompute": "full", "loss": "fused", "offload_optimizer": "cpu",
    "offload_activations": "cpu", "zero_stage": 3,
}  # fmt: skip


def test_ulysses_gives_every_rank_whole_heads_so_eight_key_value_heads_are_repeated_on_64_ranks():
    ulysses = breakdown(**LONG).binding
    model, tokens = ulysses.place.model.attention, ulysses.place.tokens
    assert amounts(ulysses)["attention.qkv"] == tokens * (64 + 64 + 64) * model.head_dim * 2
    assert amounts(ulysses)["attention.output_copy"] == amounts(ulysses)["attention.output"]


@pytest.mark.parametrize(("kind", "blocks"), [("ring", 2), ("all_gather", 8)])
def test_the_backward_pass_holds_keys_values_and_their_gradients_of_a_rings_two_blocks_or_of_the_whole_sequence(
    kind, blocks
):
    job = LLAMA_70B | {"hardware": "16x8 H100-80GB"}
    stage = breakdown(**job, context_parallel=8, context_parallel_kind=kind).binding
    block = stage.place.tokens * 8 * 128 * 2 // 4  # keys of one rank's tokens
    assert at(stage, "working.context", phases.LAST_ATTENTION) == blocks * 4 * block
    assert amounts(breakdown(**LLAMA_70B).binding)["working.context"] == 0


def test_a_tiled_feed_forward_holds_one_tile_whatever_else_is_recomputed():
    whole, tiled = (breakdown(**LONG | change).binding for change in ({}, {"recompute_modules": ["tiled_mlp"]}))
    model = tiled.place.model
    assert amounts(tiled)["ffn.up"] == 2 * model.hidden * model.ffn.hidden * 2
    assert amounts(whole)["ffn.up"] == amounts(tiled)["ffn.up"] * whole.place.tokens / model.hidden
    kept = breakdown(**LONG | {"recompute": "modules", "recompute_modules": ["tiled_mlp"]}).binding
    assert at(kept, "ffn.up", phases.FORWARD) == 0


# --- offloaded activations --------------------------------------------------------------------------------------------


def test_megatron_moves_by_module_behind_a_pipeline_and_leaves_a_dense_feed_forward_where_it_is():
    """Megatron Core's transformer_config: cpu_offloading refuses pipelines; offload_modules names no dense module."""
    stays, goes = ("ffn.up", "ffn.activation"), ("attention.qkv", "attention.input")
    plain, moved = (breakdown(**LLAMA_70B, offload_activations=target).stages[0] for target in ("none", "cpu"))
    assert all(at(moved, slot, phases.LOSS) == at(plain, slot, phases.LOSS) for slot in stays)
    assert all(at(moved, slot, phases.LOSS) * 20 < at(plain, slot, phases.LOSS) for slot in goes)
    on_host = sum(line.at(phases.HOST) for line in moved.lines)
    assert on_host == pytest.approx(plain.by_phase[phases.LOSS] - moved.by_phase[phases.LOSS])


def test_megatron_moves_whole_layers_where_there_is_one_stage():
    job = {**LLAMA_70B, "tensor_parallel": 8, "pipeline_parallel": 1}
    plain, moved = (breakdown(**job, offload_activations=target).binding for target in ("none", "cpu"))
    assert at(moved, "ffn.up", phases.LOSS) == pytest.approx(at(plain, "ffn.up", phases.LOSS) * 2 / 80)
