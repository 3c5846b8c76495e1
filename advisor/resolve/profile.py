"""A case under an article's profile: its bytes, the vendor's round gigabytes, no margin of the engine's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from advisor.errors import AdvisorError
from advisor.profiles import M3, SIXTEEN_BYTES
from advisor.types.arguments import CaseArguments
from advisor.types.case import Case, Recipe
from advisor.units import GIB, gb

#: Moments beside the fp32 master copy, in bytes (article-m3 §1.2); other optimizers keep the catalog's.
MOMENT_BYTES: Final[Mapping[str, float]] = {
    "adamw": 8, "adamw_fp8_moments": 2, "muon": 4, "adafactor": 0, "sgd_momentum": 4,
}  # fmt: skip
LONG_SEQUENCE = 8_192  # article-16-bytes §8

#: What an article has no place for.
_UNKNOWN_TO_ARTICLES = (
    "offload_parameters",
    "offload_activations",
    "virtual_stages",
    "stage_layers",
    "measured_peak_gib",
)
#: Whole-layer policies; the articles know no other.
_POLICIES = ("none", "every_k", "sqrt", "full")
#: What reads like a part of the job but changes no number of an article.
_SILENT = (
    "sequence_parallel", "implementation", "loss", "keep_logits", "compile", "lora_targets", "lora_dropout",
    "lora_dtype", "moe_imbalance", "moe_capacity_factor", "gradient_sync", "reshard_after_forward",
    "distribute_checkpoints", "expert_tensor_parallel", "weight_loading", "checkpoint_saving", "framework_version",
)  # fmt: skip


def check_profile(arguments: CaseArguments) -> None:
    """Refuse what an article cannot answer.

    Raises:
        AdvisorError: ``not_modelled`` for an argument that the profile has no formula for.
    """
    profile = arguments.profile or "exact"
    if profile == "exact":
        return
    given = [name for name in _UNKNOWN_TO_ARTICLES if getattr(arguments, name) not in (None, "none", 1, ())]
    if arguments.recompute not in (None, *_POLICIES):
        given.append("recompute")
    if given:
        value = getattr(arguments, given[0])
        detail = f"{given[0]}={value!r} has no formula in {profile}; leave it out, or use profile=exact"
        raise AdvisorError("not_modelled", detail, pointer=f"/{given[0]}")


def under_profile(case: Case) -> Case:
    """The case with an article's switches; unchanged under ``exact``."""
    profile = case.policy.profile
    if profile == "exact":
        return case
    training, device = case.training, case.cluster.device
    moments = MOMENT_BYTES.get(training.optimizer.name, training.optimizer.matrix_bytes)
    optimizer = training.optimizer.model_copy(
        update={"matrix_bytes": moments, "other_bytes": moments, "follows_precision": False}
    )
    changed = {
        "recipe": _recipe(case, profile),
        "optimizer": optimizer,
        "fragmentation": _reserve(case) if profile == SIXTEEN_BYTES else 0.0,
        "communicator_bytes": 0,
        "workspace_bytes": 0,
        "lora_bytes": 2.0,
    }
    cluster = case.cluster.model_copy(
        update={
            "driver_bytes": _round_capacity(case),
            "device": device.model_copy(update={"context_bytes": 0}),
        }
    )
    return case.model_copy(
        update={
            "training": training.model_copy(update=changed),
            "cluster": cluster,
            "warnings": (said_of(profile), *case.warnings, *_silent_warning(case)),
        }
    )


def said_of(profile: str) -> str:
    """What every answer under an article's profile says first."""
    return f"profile={profile} gives the article's arithmetic, not what a GPU holds"


def _recipe(case: Case, profile: str) -> Recipe:
    """2 + 2 + 4 bytes in mixed precision, 4 + 4 without a master copy in fp32."""
    training = case.training
    full = training.precision == "fp32"
    wide = case.arguments is not None and case.arguments.gradient_dtype == "fp32"
    eight_bit = training.precision.startswith(("fp8", "mxfp8")) and profile == M3
    width = 4.0 if full else 2.0
    return Recipe(
        framework=training.framework,
        precision=training.precision,
        weight_bytes=training.base_weight_bytes or width,
        compute_bytes=width,
        gradient_bytes=4.0 if wide else width,
        gradient_buffer=False,
        reduce_bytes=width,
        master_bytes=0.0 if full else 4.0,
        moment_bytes=4.0,
        activation_bytes=1.0 if eight_bit else width,
        weights_divided_from=3,
        source=f"{profile} §1",
    )


def _reserve(case: Case) -> float:
    """The largest of the factors that article-16-bytes §8 names for a job; it does not say how several combine."""
    return 0.15 if case.training.sequence_length > LONG_SEQUENCE else 0.10


def _round_capacity(case: Case) -> int:
    """The card's printed gigabytes, in powers of ten; a given capacity stays."""
    if case.arguments is not None and case.arguments.gpu_memory_gib is not None:
        return case.cluster.driver_bytes
    return gb(round(case.cluster.device.nominal_bytes / GIB))


def _silent_warning(case: Case) -> tuple[str, ...]:
    arguments = case.arguments
    given = [name for name in _SILENT if arguments is not None and getattr(arguments, name) is not None]
    if not given:
        return ()
    return (f"changes nothing under profile={case.policy.profile}: {', '.join(given)}",)
