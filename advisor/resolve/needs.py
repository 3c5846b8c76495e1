"""Arguments that count only beside others: refused where they contradict, warned of where they change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from advisor.errors import AdvisorError
from advisor.methods import ADAPTER_METHODS
from advisor.recompute import where_norms_are
from advisor.releases import tells
from advisor.types.architecture import ModelArchitecture
from advisor.types.arguments import CaseArguments
from advisor.types.case import TILED, Layout, Training

_ADAPTER_ARGUMENTS = ("lora_rank", "lora_targets", "lora_dtype", "lora_dropout", "lora_modules_to_save")

#: Arguments that belong to one recompute policy, and the values that say nothing.
_RECOMPUTE_ARGUMENTS: Mapping[str, tuple[str, Any]] = {
    "recompute_modules": ("modules", ()),
    "recompute_layers": ("blocks", 0),
    "recompute_every": ("every_k", 1),
}


def recompute_named(arguments: CaseArguments) -> str:
    """The recompute policy that is given, or that a recompute argument speaks for; ``none`` when nothing does."""
    if arguments.recompute:
        return arguments.recompute
    spoken = (policy for name, (policy, _) in _RECOMPUTE_ARGUMENTS.items() if getattr(arguments, name))
    return next(spoken, "none")


def implied(arguments: CaseArguments) -> frozenset[str]:
    """Layout arguments that another given argument decides, so that no search may set them."""
    names = {"pipeline_parallel": bool(arguments.stage_layers), "recompute": recompute_named(arguments) != "none"}
    return frozenset(name for name, decided in names.items() if decided)


def refuse_contradictions(arguments: CaseArguments) -> None:
    """Refuse an argument that another one makes meaningless, rather than ignore it.

    Raises:
        AdvisorError: ``conflicting_arguments`` or ``missing_argument``, with what to give or to leave out.
    """
    _refuse_idle_adapter_arguments(arguments)
    _refuse_idle_trainable(arguments)
    _refuse_other_recompute(arguments)


def _refuse_idle_adapter_arguments(arguments: CaseArguments) -> None:
    method = arguments.method or "full"
    if method in ADAPTER_METHODS:
        return
    for name in _ADAPTER_ARGUMENTS:
        if getattr(arguments, name) is not None:
            accepted = ", ".join(ADAPTER_METHODS)
            detail = (
                f"{name} needs adapters, and method={method} has none; give method ({accepted}) or leave {name} out"
            )
            raise AdvisorError("conflicting_arguments", detail, pointer=f"/{name}", suggestions=ADAPTER_METHODS)


def _refuse_idle_trainable(arguments: CaseArguments) -> None:
    method, part = arguments.method, arguments.trainable or "all"
    if method in ADAPTER_METHODS and part != "all":
        detail = (
            f"trainable={part!r} and method={method}: adapters train in every target module, the rest is frozen; "
            "name whole modules in lora_modules_to_save, or give method=freeze"
        )
        raise AdvisorError("conflicting_arguments", detail, pointer="/trainable")
    if method == "freeze" and "all" in part.split(","):
        detail = "method=freeze needs trainable, the part that is not frozen: top:N, bottom:N, embedding, head"
        raise AdvisorError("missing_argument", detail, pointer="/trainable", suggestions=["top:4", "bottom:4"])


def _refuse_other_recompute(arguments: CaseArguments) -> None:
    policy = recompute_named(arguments)
    for name, (own, nothing) in _RECOMPUTE_ARGUMENTS.items():
        given = getattr(arguments, name) or nothing
        if given not in (nothing, (TILED,)) and policy != own:
            detail = f"{name} counts only with recompute={own}, not with recompute={policy}; leave one of the two out"
            raise AdvisorError("conflicting_arguments", detail, pointer=f"/{name}", suggestions=[own])
    if policy == "every_k" and arguments.recompute_every is None:
        detail = "recompute=every_k needs recompute_every, the layers from one checkpoint to the next"
        raise AdvisorError("missing_argument", detail, pointer="/recompute_every", suggestions=["2", "4"])


def idle_arguments(
    arguments: CaseArguments, model: ModelArchitecture, training: Training, layout: Layout
) -> Iterator[str]:
    """A warning for each given argument that changes nothing in this case."""
    if model.experts is None:
        for name in ("moe_imbalance", "moe_capacity_factor", "expert_tensor_parallel"):
            if (getattr(arguments, name) or 1) != 1:
                yield f"{name} changes nothing: {model.name} has no routed experts"
    elif arguments.moe_imbalance and arguments.moe_capacity_factor:
        yield "moe_imbalance changes nothing: moe_capacity_factor bounds what the busiest expert rank gets"
    for name in sorted(_absent_modules(model).intersection(layout.recompute_modules)):
        yield f"recompute_modules: {name} changes nothing, {model.name} has no such module"
    if (
        "layernorm" in layout.recompute_modules
        and model.experts is None
        and where_norms_are(model, training) == "inside"
    ):
        yield (
            f"recompute_modules: layernorm changes nothing, {training.framework} has the norms of {model.name} inside "
            "its linear layers"
        )
    yield from _idle_in_layout(arguments, training, layout)
    if arguments.framework_version and not tells(arguments.framework_version):
        yield (
            f"framework_version={arguments.framework_version!r} changes nothing: releases of torch and transformers "
            "are told apart, as in 'torch 2.4.1, transformers 4.45.2'"
        )
    if arguments.compile and training.framework != "torchtitan":
        yield "compile changes nothing: what a compiler saves is counted for torchtitan's loss only"
    if arguments.price_per_gpu_hour and not arguments.train_tokens:
        yield "price_per_gpu_hour counts only with train_tokens: give train_tokens for days and cost"
    if layout.offload_fraction < 1 and layout.offload_optimizer == "none":
        yield "offload_fraction counts only where the optimizer is offloaded: give offload_optimizer"


def _idle_in_layout(arguments: CaseArguments, training: Training, layout: Layout) -> Iterator[str]:
    if layout.pipeline_parallel == 1 and arguments.pipeline_schedule not in (None, "1f1b"):
        yield "pipeline_schedule counts only with pipeline_parallel above 1"
    own = "ulysses" if training.framework == "deepspeed" else "ring"
    if layout.context_parallel == 1 and arguments.context_parallel_kind not in (None, own):
        yield "context_parallel_kind counts only with context_parallel above 1"
    if training.framework == "ddp" and (arguments.data_parallel_shard or 1) > 1:
        yield "data_parallel_shard divides nothing with ddp: every rank holds all states"
    divides = layout.zero_stage >= training.recipe.weights_divided_from
    if arguments.reshard_after_forward is False and layout.zero_stage != 2 and not divides:  # noqa: PLR2004 - its own
        yield "reshard_after_forward counts only where ranks share the weights, as with fsdp2 or zero_stage=3"


def _absent_modules(model: ModelArchitecture) -> set[str]:
    """Names of recompute modules that no layer of the model has."""
    absent = {"moe", "moe_act", "shared_experts"} if model.experts is None else set()
    absent |= {"mla_up_proj"} if model.attention.kind != "mla" else set()
    return absent | ({"mlp", "activation", TILED} if len(model.moe_layers) == model.layers else set())
