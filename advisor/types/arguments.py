"""The arguments of a case: one table for MCP, JSON, Python and the command line (docs/contract.md).

Every field may be left out; a null is the same as an absent one. What is left out is chosen by rule or default and
said under ``assumptions``.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from advisor.types.base import (
    Count,
    CountOrZero,
    Share,
    SmallCount,
    StageNumber,
    StepCount,
    TokenTotal,
    Value,
)

Method = Literal[
    "full", "freeze", "lora", "dora", "qlora", "dpo", "reward", "distill", "embed", "grpo", "ppo",
]  # fmt: skip
Framework = Literal["megatron", "megatron_fsdp", "deepspeed", "fsdp1", "fsdp2", "torchtitan", "ddp", "single"]
Implementation = Literal["reference", "fused"]
AttentionKernel = Literal["flash", "sdpa", "sdpa_masked", "eager"]
LossKernel = Literal["standard", "fused_logits", "fused", "chunked"]
Schedule = Literal["1f1b", "gpipe", "interleaved", "zb_h1", "zb_h2", "zb_v", "dualpipe"]
ContextKind = Literal["ring", "all_gather", "ulysses"]
RecomputePolicy = Literal["none", "near_free", "selective", "modules", "blocks", "every_k", "sqrt", "full"]
OffloadTarget = Literal["none", "cpu", "nvme"]
GradientSync = Literal["every", "last"]
WeightLoading = Literal["by_tensor", "one_rank", "every_rank", "every_rank_fp32"]
CheckpointSaving = Literal["by_tensor", "by_group", "staged", "weights", "in_turn", "whole"]
Objective = Literal["priority", "throughput", "fewest_gpus", "lowest_cost"]
Law = Literal["priority", "strict"]
Profile = Literal["exact", "article-m3", "article-must-know", "article-16-bytes"]
Detail = Literal["summary", "full"]


def _read_list(value: Any) -> Any:
    """A list may also be written as text with commas, which is how a command line sends it."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Names = Annotated[tuple[Annotated[str, Field(max_length=200)], ...], Field(max_length=64), BeforeValidator(_read_list)]
Counts = Annotated[tuple[Count, ...], Field(max_length=1024), BeforeValidator(_read_list)]


class CaseArguments(Value):
    """A training job as a user describes it."""

    # Model: exactly one of the three.
    model: str | None = Field(
        default=None,
        max_length=400,
        description="preset name ('llama-3-70b'), a size ('70B'), or, on your own machine, a path to a config.json",
    )
    hf_config: dict[str, Any] | None = Field(default=None, description="the object in a Hugging Face config.json")
    architecture: dict[str, Any] | None = Field(
        default=None,
        description="hyper-parameters: layers, hidden, heads, kv_heads, head_dim, ffn, vocab, experts, top_k …",
    )

    # Hardware
    hardware: str | None = Field(
        default=None,
        max_length=200,
        description="'4x8 H100-80GB' (nodes x GPUs per node), '64 H200', '1 RTX-4090'",
    )
    gpu_memory_gib: float | None = Field(default=None, gt=0, le=4096, description="GiB the driver reports per GPU")
    cpu_memory_gib: float | None = Field(default=None, gt=0, le=1_000_000, description="host GiB per node")
    nvme_gib: float | None = Field(default=None, ge=0, le=10_000_000, description="NVMe GiB per node")
    network: float | None = Field(default=None, gt=0, le=100_000, description="network GB/s per GPU, one way")

    # Training
    method: Method | None = Field(default=None, description="what is trained; full when absent")
    trainable: str | None = Field(
        default=None, max_length=400, description="all, top:N, bottom:N or module patterns with commas"
    )
    lora_rank: SmallCount | None = Field(default=None, description="16 when absent")
    lora_targets: Names | None = Field(
        default=None, description="attention, attention_qv, all_linear, or module names; all_linear when absent"
    )
    lora_dtype: Literal["fp32", "bf16", "fp16"] | None = Field(default=None, description="dtype of the adapters")
    lora_dropout: float | None = Field(default=None, ge=0, lt=1)
    lora_modules_to_save: Names | None = Field(default=None, description="modules trained in full beside adapters")
    quantization: str | None = Field(default=None, max_length=40, description="nf4, nf4_double, int8; nf4 for qlora")
    framework: Framework | None = Field(default=None, description="inferred from the other arguments when absent")
    framework_version: str | None = Field(default=None, max_length=80)
    precision: str | None = Field(default=None, max_length=40, description="bf16_mixed, bf16, fp16_mixed, fp32, …")
    gradient_dtype: Literal["fp32", "bf16", "fp16"] | None = None
    optimizer: str | None = Field(default=None, max_length=40, description="adamw, adamw_8bit, adafactor, muon, sgd …")
    implementation: Implementation | None = Field(
        default=None, description="reference: Hugging Face modules; fused: Megatron/TE or Liger kernels"
    )
    attention: AttentionKernel | None = Field(default=None, description="attention kernel; flash when absent")
    loss: LossKernel | None = Field(default=None, description="loss kernel; the framework's own when absent")
    keep_logits: bool | None = Field(default=None, description="the caller holds the logits during backward")
    compile: bool | None = None
    sequence_length: Count | None = Field(default=None, description="tokens a sequence, also '8k'; 4,096 when absent")
    micro_batch: SmallCount | None = Field(
        default=None, description="sequences per GPU per step of accumulation; 1 when absent"
    )
    global_batch: Count | None = Field(default=None, description="sequences per optimizer step")
    gradient_accumulation: StepCount | None = None
    gradient_sync: GradientSync | None = Field(
        default=None, description="every: reduce at each micro-batch; last: only at the last (no_sync)"
    )
    images_per_sample: CountOrZero | None = None
    tokens_per_image: Count | None = None
    moe_imbalance: float | None = Field(default=None, ge=1, le=64, description="busiest rank over the mean; 1.2")
    moe_capacity_factor: float | None = Field(default=None, gt=0, le=64, description="absent: dropless")
    train_tokens: TokenTotal | None = Field(
        default=None, description="tokens to train on, also '15T': for days and cost"
    )
    price_per_gpu_hour: float | None = Field(default=None, ge=0, le=10_000)
    weight_loading: WeightLoading | None = Field(default=None, description="who loads weights on the host")
    checkpoint_saving: CheckpointSaving | None = Field(default=None, description="what of a checkpoint the host holds")
    measured_peak_gib: float | None = Field(default=None, ge=0.01, le=4096, description="a peak you saw, GiB allocated")

    # Layout
    tensor_parallel: Count | None = None
    sequence_parallel: bool | None = Field(default=None, description="Megatron's; on with tensor parallel")
    pipeline_parallel: Count | None = None
    pipeline_schedule: Schedule | None = None
    virtual_stages: Count | None = None
    stage_layers: Counts | None = Field(default=None, description="layers of each stage, for an uneven split")
    context_parallel: Count | None = None
    context_parallel_kind: ContextKind | None = None
    expert_parallel: Count | None = None
    expert_tensor_parallel: Count | None = None
    data_parallel_replicate: Count | None = Field(default=None, description="replicas of the sharded group (HSDP)")
    data_parallel_shard: Count | None = Field(default=None, description="ranks that share the states")
    zero_stage: StageNumber | None = None
    reshard_after_forward: bool | None = None
    recompute: RecomputePolicy | None = None
    recompute_modules: Names | None = None
    recompute_layers: CountOrZero | None = Field(default=None, description="layers recomputed when recompute=blocks")
    recompute_every: Count | None = Field(default=None, description="k when recompute=every_k")
    distribute_checkpoints: bool | None = None
    offload_optimizer: OffloadTarget | None = None
    offload_parameters: OffloadTarget | None = None
    offload_activations: OffloadTarget | None = None
    offload_fraction: Share | None = Field(default=None, description="share of the optimizer that is offloaded")

    # Policy
    headroom: Annotated[float, Field(ge=0, lt=0.9)] | None = Field(
        default=None, description="share of usable memory left free; 0.05 when absent"
    )
    objective: Objective | None = None
    law: Law | None = None
    profile: Profile | None = None
    rules: str | None = Field(default=None, max_length=400, description="a site's overlay file, own machine only")
    detail: Detail | None = None
