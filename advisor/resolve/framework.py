"""Which framework a case speaks of, when it does not name one."""

from __future__ import annotations

from advisor.catalog.frameworks import FrameworkFacts, find_framework
from advisor.resolve.ledger import Ledger
from advisor.types.arguments import CaseArguments
from advisor.types.case import Cluster

_MEGATRON_ARGUMENTS = (
    "tensor_parallel", "pipeline_parallel", "context_parallel", "expert_parallel", "expert_tensor_parallel",
    "virtual_stages", "pipeline_schedule", "stage_layers", "sequence_parallel",
)  # fmt: skip


def read_framework(ledger: Ledger, cluster: Cluster) -> FrameworkFacts:
    """The given framework, or the one that the other arguments speak of."""
    name, why = infer_framework(ledger.arguments, cluster)
    return find_framework(ledger.take("framework", name, why, "derived"))


def infer_framework(arguments: CaseArguments, cluster: Cluster) -> tuple[str, str]:
    """The framework that the other arguments speak of, and why."""
    offloads = {arguments.offload_optimizer, arguments.offload_parameters}
    if "nvme" in offloads:
        return "deepspeed", "NVMe offload"
    if cluster.gpus == 1:
        deepspeed = arguments.zero_stage or "cpu" in offloads
        return ("deepspeed", "ZeRO or offload on one GPU") if deepspeed else ("single", "one GPU")
    if any(getattr(arguments, name) not in (None, 1, False) for name in _MEGATRON_ARGUMENTS):
        return "megatron", "model parallelism"
    if arguments.zero_stage == 0 and arguments.data_parallel_shard in (None, 1):
        return "ddp", "no sharding"
    return "fsdp2", "several GPUs, no model parallelism"
