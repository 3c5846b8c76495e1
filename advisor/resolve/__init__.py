"""Arguments → case: every choice the user left open is made here, once, and said with its origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from advisor.architecture import count_parameters, resolve_model
from advisor.errors import AdvisorError
from advisor.methods import adapter_parameters, check_method
from advisor.placement import MEGATRON
from advisor.resolve.framework import read_framework
from advisor.resolve.hardware import read_cluster
from advisor.resolve.layout import read_layout, with_accumulation
from advisor.resolve.ledger import Ledger
from advisor.resolve.needs import idle_arguments, implied, refuse_contradictions
from advisor.resolve.profile import check_profile, under_profile
from advisor.resolve.training import read_training
from advisor.types.architecture import ModelArchitecture
from advisor.types.arguments import CaseArguments
from advisor.types.case import Case, Cluster, Layout, Policy, Training

__all__ = ["resolve"]

DEFAULT_HEADROOM = 0.05
#: Generations whose tensor cores know fp16 only, and for which flash-attention 2 has no kernels.
BEFORE_AMPERE = ("volta", "turing")
#: Megatron Core's pipeline schedules (core/pipeline_parallel/schedules.py).
OWN_SCHEDULES = ("1f1b", "interleaved")


def resolve(arguments: CaseArguments, *, allow_paths: bool) -> Case:
    """The case that these arguments describe, with every open choice made and noted.

    Raises:
        AdvisorError: an argument is missing, unknown, contradicts another, or is not modelled yet.
    """
    refuse_unmodelled(arguments)
    refuse_contradictions(arguments)
    ledger = Ledger(arguments)
    model = resolve_model(
        model=arguments.model,
        hf_config=arguments.hf_config,
        architecture=arguments.architecture,
        allow_paths=allow_paths,
    )
    cluster = read_cluster(ledger)
    facts = read_framework(ledger, model, cluster)
    layout = read_layout(ledger, model, cluster, facts)
    training = read_training(ledger, model, cluster, facts, layout)
    layout = with_accumulation(ledger, layout, training)
    ledger.note_rest(but=_SEEN_ELSEWHERE)
    _warn(ledger, model, training, cluster)
    ledger.warnings.extend(idle_arguments(arguments, model, training, layout))
    case = Case(
        model=model,
        parameters=count_parameters(model),
        adapter_parameters=adapter_parameters(model, training),
        cluster=cluster,
        training=training,
        layout=layout,
        policy=_policy(arguments),
        assumptions=tuple(ledger.assumptions),
        warnings=tuple(ledger.warnings),
        arguments=arguments,
        free=frozenset(name for name in Layout.model_fields if getattr(arguments, name) is None) - implied(arguments),
    )
    return under_profile(case)


#: Arguments that an answer shows without being told: the model, and how the answer itself is written.
_SEEN_ELSEWHERE = ("model", "hf_config", "architecture", "detail")


_UNMODELLED: Mapping[str, str] = {
    "images_per_sample": "image tokens and vision activations are not counted yet",
    "tokens_per_image": "image tokens are not counted yet",
}


def refuse_unmodelled(arguments: CaseArguments) -> None:
    """Refuse what would change the answer but is not computed yet, rather than ignore it.

    Raises:
        AdvisorError: ``not_modelled``, with what to leave out.
    """
    for name, why in _UNMODELLED.items():
        given = getattr(arguments, name)
        if given is not None and given not in (0, False):
            detail = f"{name}={given!r} is not modelled yet: {why}; leave it out"
            raise AdvisorError("not_modelled", detail, pointer=f"/{name}")
    check_method(arguments)
    check_profile(arguments)


def _policy(arguments: CaseArguments) -> Policy:
    return Policy(
        headroom=DEFAULT_HEADROOM if arguments.headroom is None else arguments.headroom,
        objective=arguments.objective or "priority",
        law=arguments.law or "priority",
        profile=arguments.profile or "exact",
        detail=arguments.detail or "summary",
        rules=arguments.rules or "",
    )


def _warn(ledger: Ledger, model: ModelArchitecture, training: Training, cluster: Cluster) -> None:
    if model.max_positions and training.sequence_length > model.max_positions:
        ledger.warnings.append(
            f"sequence_length {training.sequence_length:,} is beyond the {model.max_positions:,} positions that "
            f"{model.name} was made for: memory is computed, quality is not promised"
        )
    if model.mtp_layers and training.framework not in MEGATRON:
        ledger.warnings.append(
            f"{model.name}'s {model.mtp_layers} multi-token-prediction module(s) are not counted outside Megatron"
        )
    if training.framework in MEGATRON:
        ledger.warnings.extend(_differs_in_megatron(ledger.arguments, model))
    if not model.exact:
        ledger.warnings.append(
            "the model's shapes are a best effort: " + "; ".join(model.notes or ("see describe_model",))
        )
    if cluster.device.generation in BEFORE_AMPERE and (training.attention == "flash" or "bf16" in training.precision):
        ledger.warnings.append(
            f"{cluster.device.name} has neither bf16 tensor cores nor flash attention: give precision=fp16_mixed and "
            "attention=eager (or sdpa_masked) for what it can run"
        )
    if not cluster.device.driver_bytes_sourced and ledger.arguments.gpu_memory_gib is None:
        ledger.warnings.append("usable memory is derived, not published, for this GPU: give gpu_memory_gib to be sure")


def _differs_in_megatron(arguments: CaseArguments, model: ModelArchitecture) -> Iterator[str]:
    """Where a launch of Megatron itself would not be what is computed."""
    tensor = arguments.tensor_parallel or 1
    if model.experts is not None and tensor > 1 and arguments.expert_tensor_parallel is None:
        yield (
            "expert_tensor_parallel=1 is taken, as published recipes have it; Megatron's default is tensor_parallel: "
            f"give expert_tensor_parallel={tensor} if the launch sets none"
        )
    if arguments.pipeline_schedule not in (None, *OWN_SCHEDULES):
        yield (
            f"pipeline_schedule={arguments.pipeline_schedule} is not in Megatron Core, which has "
            f"{' and '.join(OWN_SCHEDULES)}: it takes a fork, and is computed by the schedule's own paper"
        )
