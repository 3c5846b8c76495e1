"""What is trained and how: method, precision recipe, optimizer, kernels, sequence."""

from __future__ import annotations

from advisor.catalog.frameworks import FrameworkFacts
from advisor.catalog.optimizers import find_optimizer
from advisor.catalog.overheads import communicator_bytes, fragmentation_share, workspace_bytes
from advisor.catalog.recipes import find_recipe, precisions_of
from advisor.errors import AdvisorError
from advisor.methods import ADAPTER_METHODS, check_trainable, lora_modules, quantized_bytes, saved_modules
from advisor.resolve.ledger import Ledger
from advisor.types.architecture import ModelArchitecture
from advisor.types.case import Cluster, Layout, Training

DEFAULT_SEQUENCE = 4096
DEFAULT_IMBALANCE = 1.2


def read_training(
    ledger: Ledger, model: ModelArchitecture, cluster: Cluster, facts: FrameworkFacts, layout: Layout
) -> Training:
    """Method, recipe, optimizer and kernels, with the framework's own choices where nothing was given.

    Raises:
        AdvisorError: a name that the framework or the catalog does not know.
    """
    take, arguments = ledger.take, ledger.arguments
    method = take("method", "full")
    precision = take("precision", _precision(facts, method), "the framework's own")
    recipe = find_recipe(facts.name, precision, arguments.gradient_dtype)
    adapters = method in ADAPTER_METHODS
    optimizer = take("optimizer", "adamw")
    named = facts.optimizer if optimizer == "adamw" else optimizer
    quantization = _quantization(ledger, method)
    base_bytes, scale_bytes = quantized_bytes(quantization)
    compute = take("implementation", facts.implementation, "the framework's own")
    return Training(
        method=method,
        trainable=check_trainable(take("trainable", "all"), model),
        lora_rank=take("lora_rank", 16) if adapters else 0,
        lora_targets=lora_modules(take("lora_targets", ("all_linear",)), model) if adapters else (),
        lora_bytes=_lora_bytes(ledger, recipe.activation_bytes) if adapters else 0,
        lora_dropout=take("lora_dropout", 0.0) if adapters else 0.0,
        base_weight_bytes=base_bytes,
        base_scale_bytes=scale_bytes,
        lora_modules_to_save=saved_modules(take("lora_modules_to_save", ())) if adapters else (),
        quantization=quantization,
        framework=facts.name,
        framework_version=take("framework_version", facts.version, "the version whose facts were read", "catalog"),
        precision=precision,
        optimizer=find_optimizer(named),
        recipe=recipe,
        implementation=compute,
        bucket_elements=facts.reduce_bucket_elements,
        fragmentation=fragmentation_share(),
        communicator_bytes=communicator_bytes(),
        workspace_bytes=workspace_bytes(cluster.device.generation),
        attention=take("attention", facts.attention if facts.attention != "sdpa" else "flash", "flash is free"),
        loss=take("loss", facts.loss, "the framework's own"),
        keep_logits=take("keep_logits", default=False),
        compile=bool(arguments.compile),
        sequence_length=take("sequence_length", DEFAULT_SEQUENCE),
        global_batch=arguments.global_batch or 0,
        gradient_sync=take("gradient_sync", "every", "the recipe's"),
        weight_loading=arguments.weight_loading,
        checkpoint_saving=arguments.checkpoint_saving,
        images_per_sample=0,
        tokens_per_image=0,
        moe_imbalance=_moe_imbalance(ledger, layout),
        moe_capacity_factor=arguments.moe_capacity_factor or 0,
        train_tokens=arguments.train_tokens or 0,
        price_per_gpu_hour=arguments.price_per_gpu_hour or 0,
        measured_peak_gib=arguments.measured_peak_gib or 0,
    )


def _precision(facts: FrameworkFacts, method: str) -> str:
    """Adapters are tuned over a bf16 base wherever the framework has that recipe."""
    if method in ADAPTER_METHODS and "bf16" in precisions_of(facts.name):
        return "bf16"
    return facts.precision


def _quantization(ledger: Ledger, method: str) -> str:
    """How the base weights are quantised: by QLoRA, and by nothing else."""
    given = ledger.arguments.quantization
    if method != "qlora" and given not in (None, "none"):
        detail = f"quantization={given!r} needs method=qlora: quantised weights do not train"
        raise AdvisorError("invalid_value", detail, pointer="/quantization", suggestions=["none"])
    if method == "qlora" and given == "none":
        detail = "method=qlora with quantization='none' is method=lora; give that, or a quantization such as nf4"
        raise AdvisorError("invalid_value", detail, pointer="/quantization", suggestions=["nf4", "int8"])
    return str(ledger.take("quantization", "nf4")) if method == "qlora" else "none"


def _moe_imbalance(ledger: Ledger, layout: Layout) -> float:
    """The busiest expert rank's load; assumed only where there are several, kept for a search that makes them."""
    given = ledger.arguments.moe_imbalance
    if given is not None or layout.expert_parallel > 1:
        return float(ledger.take("moe_imbalance", DEFAULT_IMBALANCE))
    return DEFAULT_IMBALANCE


def _lora_bytes(ledger: Ledger, activation_bytes: float) -> float:
    widths = {"fp32": 4.0, "bf16": 2.0, "fp16": 2.0}
    name = ledger.take(
        "lora_dtype", "fp32" if activation_bytes == widths["fp32"] else "bf16", "the base weights' dtype"
    )
    return widths[name]
