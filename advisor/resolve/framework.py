"""Which framework a case speaks of, when it does not name one."""

from __future__ import annotations

from advisor.catalog.frameworks import FrameworkFacts, find_framework
from advisor.resolve.ledger import Ledger
from advisor.types.architecture import ModelArchitecture
from advisor.types.arguments import CaseArguments
from advisor.types.case import Cluster

_MEGATRON_ARGUMENTS = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "virtual_stages", "stage_layers",
    "sequence_parallel",
)  # fmt: skip


def read_framework(ledger: Ledger, model: ModelArchitecture, cluster: Cluster) -> FrameworkFacts:
    """The given framework, or the one that the other arguments speak of."""
    name, why = infer_framework(ledger.arguments, model, cluster)
    return find_framework(ledger.take("framework", name, why, "derived"))


def infer_framework(arguments: CaseArguments, model: ModelArchitecture, cluster: Cluster) -> tuple[str, str]:
    """The framework that the other arguments speak of, and why; one that changes nothing does not speak."""
    offloads = {arguments.offload_optimizer, arguments.offload_parameters}
    if "nvme" in offloads:
        return "deepspeed", "NVMe offload"
    if cluster.gpus == 1:
        deepspeed = arguments.zero_stage or "cpu" in offloads
        return ("deepspeed", "ZeRO or offload on one GPU") if deepspeed else ("single", "one GPU")
    spoken = (*_MEGATRON_ARGUMENTS, *(("expert_tensor_parallel",) if model.experts else ()))
    if any(getattr(arguments, name) not in (None, 1, False) for name in spoken):
        return "megatron", "model parallelism"
    if arguments.zero_stage == 0 and arguments.data_parallel_shard in (None, 1):
        return "ddp", "no sharding"
    return "fsdp2", "several GPUs, no model parallelism"
