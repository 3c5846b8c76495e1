"""A case with nothing left open: what one estimate is computed from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor.types import arguments as a
from advisor.types.architecture import ModelArchitecture, ParameterCount
from advisor.types.base import Count, CountOrZero, LargeCount, Share, Value

#: A recompute module: the feed-forward, a tile of the tokens after the other. It goes with any policy for the rest.
TILED = "tiled_mlp"

Origin = str  # "given" | "catalog" | "default" | "derived" | "rule:<id>"


class Assumption(Value):
    """One value the answer rests on, and where it came from."""

    argument: str
    value: str | int | float | bool | None
    origin: Origin = Field(description="given, catalog, default, derived or rule:<id>")
    note: str = ""
    flips_verdict: bool | None = Field(default=None, description="another plausible value would change the verdict")


class Device(Value):
    """An accelerator, as the catalog describes it. Rates in bytes/s and FLOP/s, one way, dense."""

    name: str
    vendor: str
    generation: str = Field(description="architecture family: ampere, hopper, blackwell, cdna3 …")
    nominal_bytes: CountOrZero = Field(description="the vendor's memory figure")
    driver_bytes: CountOrZero = Field(description="total memory the driver reports")
    driver_bytes_sourced: bool = Field(description="False when the driver's figure is derived, not seen published")
    memory_bytes_per_s: CountOrZero
    bf16_flops_per_s: LargeCount
    matmul_flops_per_s: LargeCount = Field(description="best measured bf16 matmul, else the datasheet's dense rate")
    scale_up_bytes_per_s: CountOrZero = Field(description="NVLink, xGMI …, one way per GPU; 0: none")
    scale_up_domain: Count = Field(description="GPUs that reach each other at that rate")
    host_link_bytes_per_s: CountOrZero
    network_bytes_per_s: CountOrZero = Field(description="typical network per GPU, one way; 0: unknown")
    gpus_per_node: Count
    context_bytes: CountOrZero = Field(description="CUDA/HIP context and loaded kernels, outside the allocator")


class Cluster(Value):
    """The GPUs of the job."""

    device: Device
    nodes: Count
    gpus_per_node: Count
    driver_bytes: CountOrZero
    cpu_bytes_per_node: LargeCount | None = Field(default=None, description="None: unknown")
    nvme_bytes_per_node: LargeCount | None = None
    network_bytes_per_s: CountOrZero = 0

    @property
    def gpus(self) -> int:
        """All GPUs."""
        return self.nodes * self.gpus_per_node

    @property
    def fast_domain(self) -> int:
        """GPUs that talk over NVLink or its like; 1 when there is no such link."""
        if self.device.scale_up_bytes_per_s == 0:
            return 1
        if self.device.scale_up_domain > self.device.gpus_per_node:  # a rack-scale domain spans nodes
            return min(self.device.scale_up_domain, self.gpus)
        return min(self.device.scale_up_domain, self.gpus_per_node)


class OptimizerStates(Value):
    """An optimizer's state, in bytes per parameter of the matrices it treats specially and of the rest."""

    name: str
    matrix_bytes: float = Field(ge=0, description="state bytes per element of a 2-D weight of the layers")
    other_bytes: float = Field(ge=0, description="state bytes per element of embeddings, head, norms, biases")
    follows_precision: bool = Field(description="moments take the weights' dtype where the recipe has no master copy")
    factored: bool = Field(default=False, description="keeps row and column sums instead of a full second moment")
    step_matrix_bytes: float = Field(default=0, ge=0, description="scratch per element while it steps")
    step_other_bytes: float = Field(default=0, ge=0)
    largest_tensor_bytes: float = Field(default=0, ge=0, description="scratch per element of the largest tensor")
    matrices_alone: bool = Field(default=False, description="what steps alone is a matrix of the layers, never a table")
    in_backward: bool = Field(default=False, description="steps each weight in the backward pass, freeing its gradient")


class Recipe(Value):
    """How a framework stores a precision: bytes per parameter and which ZeRO stage divides each."""

    framework: str
    precision: str
    weight_bytes: float = Field(description="the resident weights")
    compute_bytes: float = Field(description="the dtype weights are gathered and multiplied in")
    cast_copy_bytes: float = Field(default=0, description="autocast copies of the weights held to the backward pass")
    gradient_bytes: float
    gradient_buffer: bool = Field(description="allocated once and kept, rather than made in each backward pass")
    reduce_bytes: float = Field(description="dtype gradients are reduced in")
    master_bytes: float = Field(description="a separate master copy; 0 where the weights themselves are it")
    moment_bytes: float = Field(description="dtype of optimizer moments that follow the precision")
    activation_bytes: float
    matrix_bytes: float = Field(default=0, description="a layer's matrix with its low-precision copies; 0: as weights")
    transpose_bytes: float = Field(default=0, description="a matrix's transposed copy, on GPUs whose products need it")
    kept_gradient_bytes: float = Field(default=0, description="a gradient kept beside the one that no rank divides yet")
    step_gradient_bytes: float = Field(default=0, description="a wider copy of the gradients that the step works on")
    step_weight_bytes: float = Field(default=0, description="a copy of a stepped matrix, made to be cast narrower")
    matrix_input_bytes: float = Field(default=0, description="a matrix's input as it is kept; 0: as activations")
    routed_input_bytes: float = Field(default=0, description="the experts' input as it is kept; 0: as other matrices'")
    attention_output_bytes: float = Field(
        default=0, description="attention's output kept once for all; 0: as activations"
    )
    gate_bytes: float = Field(default=0, description="what the activation function reads, as kept; 0: as activations")
    weights_divided_from: int = Field(description="ZeRO stage from which the weights are divided; 9: never")
    gradients_divided_from: int = 2
    optimizer_divided_from: int = 1
    evidence: Literal["verified", "known", "assumed"] = "assumed"
    source: str = ""


class Training(Value):
    """What is trained and how, apart from the layout."""

    method: a.Method
    trainable: str
    lora_rank: CountOrZero
    lora_targets: tuple[str, ...]
    lora_bytes: float
    lora_dropout: float
    base_weight_bytes: float = Field(default=0, description="bytes of a quantised base weight; 0: not quantised")
    base_scale_bytes: float = Field(default=0, description="bytes of block scales a quantised weight")
    lora_modules_to_save: tuple[str, ...]
    quantization: str
    framework: a.Framework
    framework_version: str
    precision: str
    optimizer: OptimizerStates
    recipe: Recipe
    implementation: a.Implementation
    bucket_elements: CountOrZero = Field(default=0, description="elements of a communication bucket")
    fragmentation: float = Field(default=0.0, description="share that the allocator holds beyond what is allocated")
    communicator_bytes: CountOrZero = Field(default=0, description="NCCL's memory outside the allocator, per GPU")
    workspace_bytes: CountOrZero = Field(default=0, description="matrix library's workspace, inside the allocator")
    attention: a.AttentionKernel
    loss: a.LossKernel
    keep_logits: bool
    compile: bool
    sequence_length: Count
    global_batch: CountOrZero = Field(description="0: micro-batch x accumulation x data parallel")
    gradient_sync: a.GradientSync
    weight_loading: a.WeightLoading | None = Field(default=None, description="None: the framework's way")
    checkpoint_saving: a.CheckpointSaving | None = Field(default=None, description="None: the framework's way")
    images_per_sample: CountOrZero
    tokens_per_image: CountOrZero
    moe_imbalance: float
    moe_capacity_factor: float = Field(description="0: dropless")
    train_tokens: LargeCount = Field(description="0: nobody asks how long it all takes")
    price_per_gpu_hour: float
    measured_peak_gib: float


class Layout(Value):
    """One parallel layout. The field names are the arguments': sent back, they give the same figures."""

    tensor_parallel: Count = 1
    sequence_parallel: bool = False
    pipeline_parallel: Count = 1
    pipeline_schedule: a.Schedule = "1f1b"
    virtual_stages: Count = 1
    stage_layers: tuple[int, ...] = ()
    context_parallel: Count = 1
    context_parallel_kind: a.ContextKind = "ring"
    expert_parallel: Count = 1
    expert_tensor_parallel: Count = 1
    data_parallel_replicate: Count = 1
    data_parallel_shard: Count = 1
    zero_stage: int = Field(default=0, ge=0, le=3)
    reshard_after_forward: bool = True
    micro_batch: Count = 1
    gradient_accumulation: Count = 1
    recompute: a.RecomputePolicy = "none"
    recompute_modules: tuple[str, ...] = ()
    recompute_layers: CountOrZero = 0
    recompute_every: Count = 1
    distribute_checkpoints: bool = False
    offload_optimizer: a.OffloadTarget = "none"
    offload_parameters: a.OffloadTarget = "none"
    offload_activations: a.OffloadTarget = "none"
    offload_fraction: Share = 1.0

    @property
    def data_parallel(self) -> int:
        """Ranks that see different samples: replicas times shards (context parallel is apart)."""
        return self.data_parallel_replicate * self.data_parallel_shard

    @property
    def last_stage_layers(self) -> int:
        """Layers of the last pipeline stage where a given split does not leave it an even share; else 0."""
        even = sum(self.stage_layers) // max(len(self.stage_layers), 1)
        return self.stage_layers[-1] if self.stage_layers and self.stage_layers[-1] != even else 0

    @property
    def world(self) -> int:
        """GPUs the layout uses. Expert parallel lives inside data, context and tensor parallel."""
        return self.tensor_parallel * self.pipeline_parallel * self.context_parallel * self.data_parallel


class Policy(Value):
    """What is asked of the answer, apart from the job."""

    headroom: float = 0.05
    objective: a.Objective = "priority"
    law: a.Law = "priority"
    profile: a.Profile = "exact"
    detail: a.Detail = "summary"
    rules: str = ""


class Case(Value):
    """A training job with every choice made."""

    model: ModelArchitecture
    parameters: ParameterCount
    adapter_parameters: CountOrZero = Field(default=0, description="parameters of the adapters, whole model")
    cluster: Cluster
    training: Training
    layout: Layout
    policy: Policy
    assumptions: tuple[Assumption, ...] = ()
    warnings: tuple[str, ...] = ()
    arguments: a.CaseArguments | None = Field(default=None, description="what the case was resolved from")
    free: frozenset[str] = Field(
        default=frozenset(), description="layout arguments nobody gave: recommend may set them"
    )
