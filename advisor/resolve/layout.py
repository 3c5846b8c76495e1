"""The layout of a case: given degrees, and what they leave to data parallelism."""

from __future__ import annotations

from advisor.catalog.frameworks import FrameworkFacts
from advisor.errors import AdvisorError, unknown_name
from advisor.layers import even_as_possible
from advisor.phases import MODULE_SLOTS
from advisor.resolve.ledger import Ledger
from advisor.resolve.needs import recompute_named
from advisor.types.architecture import ModelArchitecture
from advisor.types.arguments import CaseArguments
from advisor.types.case import Cluster, Layout, Training
from advisor.units import format_gpus

MOST_STEPS = 1_000_000  # as the argument gradient_accumulation accepts
PIPELINE_ACCUMULATION = 4  # micro-batches per stage that keep the bubble near a fifth
STAGE_THAT_KEEPS_WEIGHTS = 2  # ZeRO-2 shares gradients; weights stay whole from the forward to the backward pass
_SEQUENCE_PARALLEL = ("megatron", "megatron_fsdp", "torchtitan", "fsdp2")


def read_layout(ledger: Ledger, model: ModelArchitecture, cluster: Cluster, facts: FrameworkFacts) -> Layout:
    """The layout with every degree filled in; accumulation follows once the batch is known.

    Raises:
        AdvisorError: ``illegal_layout`` when the degrees do not multiply up to the GPUs or the layers.
    """
    take, arguments = ledger.take, ledger.arguments
    tensor, context = take("tensor_parallel", 1), take("context_parallel", 1)
    pipeline = take("pipeline_parallel", len(arguments.stage_layers) if arguments.stage_layers else 1)
    model_ranks = tensor * pipeline * context
    if model_ranks > cluster.gpus or cluster.gpus % model_ranks:
        fits = [n for n in range(1, cluster.gpus + 1) if cluster.gpus % n == 0]
        detail = (
            f"tensor_parallel x pipeline_parallel x context_parallel = {tensor} x {pipeline} x {context} = "
            f"{model_ranks} does not "
            f"divide the {format_gpus(cluster.gpus)} of the hardware; their product must be one of {_listed(fits)}"
        )
        ways = ("tensor_parallel", "pipeline_parallel", "stage_layers")
        pointer = next((f"/{name}" for name in ways if getattr(arguments, name)), "")
        raise AdvisorError("illegal_layout", detail, pointer=pointer or "/context_parallel")
    replicate, shard = _data_parallel(ledger, facts, cluster.gpus // model_ranks)
    virtual = take("virtual_stages", 1)
    stage_layers = _stage_layers(ledger, model, pipeline, virtual)
    sequence_parallel = take(
        "sequence_parallel", tensor > 1 and facts.name in _SEQUENCE_PARALLEL, "on with tensor parallel"
    )
    zero = take("zero_stage", _zero_stage(facts, replicate * shard * context), "the framework's own")
    schedule = take("pipeline_schedule", "interleaved" if virtual > 1 else "1f1b")
    return Layout(
        tensor_parallel=tensor,
        sequence_parallel=sequence_parallel,
        pipeline_parallel=pipeline,
        pipeline_schedule=schedule,
        virtual_stages=virtual,
        stage_layers=stage_layers,
        context_parallel=context,
        context_parallel_kind=take("context_parallel_kind", "ulysses" if facts.name == "deepspeed" else "ring"),
        expert_parallel=take("expert_parallel", 1),
        expert_tensor_parallel=take("expert_tensor_parallel", 1, "experts are not divided by tensor parallel"),
        data_parallel_replicate=replicate,
        data_parallel_shard=shard,
        zero_stage=zero,
        reshard_after_forward=take("reshard_after_forward", not _keeps_gathered(facts, zero, pipeline)),
        micro_batch=take("micro_batch", 1),
        recompute=_recompute(ledger),
        recompute_modules=_recompute_modules(arguments),
        recompute_layers=arguments.recompute_layers or 0,
        recompute_every=arguments.recompute_every or 1,
        distribute_checkpoints=bool(arguments.distribute_checkpoints),
        offload_optimizer=take("offload_optimizer", "none"),
        offload_parameters=take("offload_parameters", "none"),
        offload_activations=take("offload_activations", "none"),
        offload_fraction=take("offload_fraction", 1.0),
    )


def _listed(numbers: list[int], most: int = 16) -> str:
    shown = ", ".join(str(number) for number in numbers[:most])
    return shown + (f" and {len(numbers) - most} more" if len(numbers) > most else "")


def _recompute(ledger: Ledger) -> str:
    """A recompute argument speaks for its policy."""
    named = recompute_named(ledger.arguments)
    return str(ledger.take("recompute", named, origin="default" if named == "none" else "derived"))


def _recompute_modules(arguments: CaseArguments) -> tuple[str, ...]:
    for name in arguments.recompute_modules or ():
        if name not in MODULE_SLOTS:
            raise unknown_name("recompute module", name, MODULE_SLOTS, pointer="/recompute_modules")
    return arguments.recompute_modules or ()


def _data_parallel(ledger: Ledger, facts: FrameworkFacts, ranks: int) -> tuple[int, int]:
    """Replicas and shards of what remains for data parallelism."""
    arguments = ledger.arguments
    replicate, shard = arguments.data_parallel_replicate, arguments.data_parallel_shard
    if replicate is None and shard is None:
        shards = facts.name not in {"ddp", "single"}
        replicate, shard = (1, ranks) if shards else (ranks, 1)
    else:
        replicate = ranks // shard if replicate is None and shard else replicate
        shard = ranks // replicate if shard is None and replicate else shard
    if not replicate or not shard or replicate * shard != ranks:
        detail = (
            f"data_parallel_replicate x data_parallel_shard must be {ranks}, the GPUs that the other "
            f"dimensions leave; given {arguments.data_parallel_replicate} x {arguments.data_parallel_shard}"
        )
        raise AdvisorError("illegal_layout", detail, pointer="/data_parallel_shard")
    ledger.take("data_parallel_replicate", replicate, "what the other dimensions leave", "derived")
    ledger.take("data_parallel_shard", shard, "what the other dimensions leave", "derived")
    return replicate, shard


def _keeps_gathered(facts: FrameworkFacts, zero: int, pipeline: int) -> bool:
    """ZeRO-2 keeps weights whole; torchtitan keeps a pipeline stage's, rather than gather for each micro-batch."""
    return zero == STAGE_THAT_KEEPS_WEIGHTS or (facts.name == "torchtitan" and pipeline > 1)


def _stage_layers(ledger: Ledger, model: ModelArchitecture, pipeline: int, virtual: int) -> tuple[int, ...]:
    """The given split of the layers; an uneven one of our own where they do not divide; empty for an even one."""
    given = ledger.arguments.stage_layers
    if not given:
        if model.layers % pipeline == 0 or virtual > 1 or pipeline > model.layers:
            return ()
        split = even_as_possible(model.layers, pipeline)
        return tuple(ledger.take("stage_layers", split, "layers do not divide; the last stage stays light", "derived"))
    if len(given) != pipeline or sum(given) != model.layers:
        detail = (
            f"stage_layers lists {len(given)} stages with {sum(given)} layers; pipeline_parallel={pipeline} and the "
            f"model's {model.layers} layers need {pipeline} numbers that add up to {model.layers}"
        )
        raise AdvisorError("illegal_layout", detail, pointer="/stage_layers")
    return given


def _zero_stage(facts: FrameworkFacts, ranks: int) -> int:
    if ranks == 1 and facts.name != "deepspeed":
        return 0
    return {"single": 0, "ddp": 0, "megatron": 1}.get(facts.name, 3)


def with_accumulation(ledger: Ledger, layout: Layout, training: Training) -> Layout:
    """Accumulation from the global batch, or a flagged default with a pipeline."""
    given, batch = ledger.arguments.gradient_accumulation, training.global_batch
    per_step = layout.micro_batch * layout.data_parallel
    if given is None and batch:
        if batch % per_step:
            detail = (
                f"global_batch={batch} is not a multiple of micro_batch x data parallel = {layout.micro_batch} x "
                f"{layout.data_parallel} = {per_step}"
            )
            near = [str(max(batch // per_step, 1) * per_step), str((batch // per_step + 1) * per_step)]
            raise AdvisorError("illegal_layout", detail, pointer="/global_batch", suggestions=near)
        steps = batch // per_step
        if steps > MOST_STEPS:
            detail = f"global_batch={batch} means {steps:,} micro-batches a step on these GPUs; at most {MOST_STEPS:,}"
            raise AdvisorError("invalid_value", detail, pointer="/global_batch")
        ledger.note("gradient_accumulation", steps, "derived", "global batch over micro-batch and data parallel")
        return layout.model_copy(update={"gradient_accumulation": steps})
    pipeline = layout.pipeline_parallel
    default = PIPELINE_ACCUMULATION * pipeline if pipeline > 1 else 1
    note = (
        "4 micro-batches per pipeline stage: not given, and it decides how many are in flight" if pipeline > 1 else ""
    )
    steps = ledger.take("gradient_accumulation", default, note)
    if batch and steps * per_step != batch:
        detail = f"global_batch={batch} contradicts micro_batch x accumulation x data parallel = {steps * per_step}"
        raise AdvisorError("illegal_layout", detail, pointer="/global_batch", suggestions=[str(steps * per_step)])
    return layout.model_copy(update={"gradient_accumulation": steps})
