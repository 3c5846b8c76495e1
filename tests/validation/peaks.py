"""Peak bytes of a whole training step, against the peak of the same step counted on PyTorch's real modules."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from advisor.estimate import estimate
from tests.validation.comparison import Comparison, compare, median_error, print_worst, within
from tests.validation.facts import fact, read_facts
from tests.validation.torch_cases import Arguments, case_of, chosen

GPUS_PER_NODE = 8

#: The optimizers that were stepped → recipe and step. The hand-written master-weight ones go tensor by tensor.
OPTIMIZERS: Mapping[str, Arguments] = {
    "adamw_bf16": {"precision": "bf16", "optimizer": "adamw_fused"},
    "adamw_bf16_foreach": {"precision": "bf16", "optimizer": "adamw"},
    "adamw_bf16_forloop": {"precision": "bf16", "optimizer": "adamw_for_loop"},
    "adamw_master": {"precision": "bf16_master", "optimizer": "adamw_for_loop"},
    "adamw_master_fp32grad": {"precision": "bf16_master", "optimizer": "adamw_fused", "gradient_dtype": "fp32"},
    "adamw_autocast": {"precision": "bf16_mixed", "optimizer": "adamw_fused"},
    "adamw_autocast_foreach": {"precision": "bf16_mixed", "optimizer": "adamw"},
    "sgd": {"precision": "bf16", "optimizer": "sgd"},
    "adamw_master_fsdp": {"precision": "bf16_mixed", "optimizer": "adamw"},
    "adamw_bf16_fsdp": {"precision": "bf16", "optimizer": "adamw"},
}


def run(path: Path) -> dict[str, Any]:
    """Compares every case of the file, prints the worst and returns how close they are."""
    rows = comparisons(path)
    print_worst(rows, "counted by PyTorch")
    return {"n": len(rows), "within_5_percent": within(rows, 0.05), "median_error": median_error(rows)}


@cache
def comparisons(path: Path) -> tuple[Comparison, ...]:
    """One row a case: the peak of one rank."""
    facts = read_facts(path, "configs", "cases")
    return tuple(_comparison(name, case, facts["configs"]) for name, case in facts["cases"].items())


def _comparison(name: str, case: Mapping[str, Any], configs: Mapping[str, Any]) -> Comparison:
    options = fact(case, "options", name)
    config = fact(configs, fact(case, "config", name), "configs")
    usual = "adamw_master_fsdp" if "world" in options else "adamw_bf16"
    optimizer = chosen(OPTIMIZERS, options, "optim", usual)
    return compare(
        name, options.get("optim", usual), fact(case, "peak", name), lambda: peak_bytes(options, config, optimizer)
    )


def peak_bytes(options: Mapping[str, Any], config: Mapping[str, Any], optimizer: Arguments) -> int:
    """Our peak of one rank, without the library workspaces that fake tensors do not show."""
    case = case_of(options, config, **optimizer, **_ranks(options))
    return estimate(case).peak_bytes - case.training.workspace_bytes


def _ranks(options: Mapping[str, Any]) -> Arguments:
    if "world" not in options:
        return {"framework": "single", "hardware": "1 H100-80GB"}
    nodes, rest = divmod(options["world"], GPUS_PER_NODE)
    gpus = f"1x{rest}" if rest else f"{nodes}x{GPUS_PER_NODE}"
    return {
        "framework": "fsdp2",
        "hardware": f"{gpus} H100-80GB",
        "reshard_after_forward": fact(options, "reshard", "a row under FSDP2"),
    }
