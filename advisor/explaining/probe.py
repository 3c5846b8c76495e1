"""A program of one training step for the reader's own GPUs: it prints what to give back as ``measured_peak_gib``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from advisor.architecture.presets import preset_entry
from advisor.types.arguments import CaseArguments
from advisor.types.case import Case
from advisor.units import GIB

#: What the program can do; of anything else, the lines for the reader's own program are given.
FRAMEWORKS: Final = {"single": "python", "ddp": "torchrun", "fsdp2": "torchrun"}
PRECISIONS: Final = {"bf16_mixed": "float32", "bf16": "bfloat16"}
ATTENTION: Final = {"flash": "sdpa", "sdpa": "sdpa", "eager": "eager"}
RECOMPUTE: Final = ("none", "full")
WEIGHTS_DIVIDED: Final = 3  # the ZeRO stage
PROBE: Final = "probe"

OWN_PROGRAM: Final = f"""\
# Put these lines around the second step of your own program: the first one makes the optimizer's states.
torch.cuda.reset_peak_memory_stats()
train_step()
print(f"measured_peak_gib={{torch.cuda.max_memory_allocated() / {GIB}:.2f}}")
"""

_PROGRAM: Final = """\
# One training step of {name} with random weights: nothing is downloaded. Needs torch and transformers.
# {command}
import os

import torch
import torch.distributed as dist
from transformers import AutoConfig, AutoModelForCausalLM

CONFIG = {config}
MICRO_BATCH, SEQUENCE, ACCUMULATION = {micro_batch}, {sequence}, {accumulation}

rank = int(os.environ.get("LOCAL_RANK", 0))
torch.cuda.set_device(rank)
if "RANK" in os.environ:
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
config = AutoConfig.for_model(**CONFIG, use_cache=False)
with torch.device("meta"):
    model = AutoModelForCausalLM.from_config(config, dtype=torch.{dtype}, attn_implementation="{attention}")
{shard}model.to_empty(device="cuda")
model.tie_weights()
with torch.no_grad():
    for tensor in [*model.parameters(), *model.buffers()]:
        tensor.normal_(std=0.02) if tensor.is_floating_point() else tensor.zero_()
model.train()
{recompute}{replicate}optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
tokens = torch.randint(config.vocab_size, (MICRO_BATCH, SEQUENCE), device="cuda")


def train_step():
    for _ in range(ACCUMULATION):
        with torch.autocast("cuda", torch.bfloat16, enabled={autocast}):
            loss = model(input_ids=tokens, labels=tokens).loss
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()


train_step()
torch.cuda.reset_peak_memory_stats()
train_step()
peak = torch.tensor(torch.cuda.max_memory_allocated() / {gib}, device="cuda")
if dist.is_initialized():
    dist.all_reduce(peak, dist.ReduceOp.MAX)
if rank == 0:
    print(f"measured_peak_gib={{peak.item():.2f}}")
"""

_SHARD: Final = """\
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.{reduce})
for layer in model.base_model.layers:
    fully_shard(layer, mp_policy=policy, reshard_after_forward={reshard})
fully_shard(model, mp_policy=policy, reshard_after_forward={reshard})
"""
_REPLICATE: Final = "model = torch.nn.parallel.DistributedDataParallel(model, [rank])\n"


def program(case: Case, arguments: CaseArguments | None) -> str:
    """The program for a case; for one that it cannot run, the lines for the reader's own program."""
    if beyond(case, arguments):
        return OWN_PROGRAM
    training, layout = case.training, case.layout
    sharded = training.framework == "fsdp2"
    return _PROGRAM.format(
        gib=GIB,
        name=case.model.name,
        command=_command(case),
        config=repr(dict(_config(case, arguments))),
        micro_batch=layout.micro_batch,
        sequence=training.sequence_length,
        accumulation=layout.gradient_accumulation,
        dtype=PRECISIONS[training.precision],
        attention=ATTENTION[training.attention],
        shard=_sharding(case) if sharded else "",
        recompute="model.gradient_checkpointing_enable()\n" if layout.recompute == "full" else "",
        replicate=_REPLICATE if training.framework == "ddp" else "",
        autocast=training.precision == "bf16_mixed" and not sharded,
    )


def beyond(case: Case, arguments: CaseArguments | None) -> str:
    """What of a case the program cannot run, as ``argument=value``; empty when it can run it."""
    training, layout = case.training, case.layout
    asked = {
        "framework": (training.framework, FRAMEWORKS),
        "method": (training.method, ("full",)),
        "precision": (training.precision, PRECISIONS),
        "optimizer": (training.optimizer.name, ("adamw",)),
        "attention": (training.attention, ATTENTION),
        "loss": (training.loss, ("standard",)),
        "recompute": (layout.recompute, RECOMPUTE),
        "offload_optimizer": (layout.offload_optimizer, ("none",)),
        "context_parallel": (layout.context_parallel, (1,)),
        "tensor_parallel": (layout.tensor_parallel, (1,)),
        "data_parallel_replicate": (layout.data_parallel_replicate, (1, layout.data_parallel)),
        "model": (case.model.name, (case.model.name,) if _config(case, arguments) else ()),
    }
    return next((f"{name}={value}" for name, (value, accepted) in asked.items() if value not in accepted), "")


def _config(case: Case, arguments: CaseArguments | None) -> Mapping[str, Any]:
    """The model's own configuration; empty where none is known, or where it is more than a language model."""
    if case.model.vision is not None:
        return {}
    if arguments is not None and arguments.hf_config is not None:
        return arguments.hf_config
    return dict(preset_entry(case.model.name)["config"]) if case.model.source == "preset" else {}


def _sharding(case: Case) -> str:
    recipe, layout = case.training.recipe, case.layout
    reduce = "float32" if recipe.reduce_bytes > recipe.compute_bytes else "bfloat16"
    return _SHARD.format(reduce=reduce, reshard=layout.zero_stage == WEIGHTS_DIVIDED and layout.reshard_after_forward)


def _command(case: Case) -> str:
    if FRAMEWORKS[case.training.framework] == "python":
        return "python probe.py"
    nodes = f"--nnodes {case.cluster.nodes} --rdzv-endpoint HOST:29500 " if case.cluster.nodes > 1 else ""
    return f"torchrun {nodes}--nproc-per-node {case.cluster.gpus_per_node} probe.py"
