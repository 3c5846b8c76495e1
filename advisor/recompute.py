"""What recompute leaves of a layer: tensors dropped by name of module, or whole layers that keep their input only."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final, Literal

from advisor.columnwise import Number, at_most, choose, pick
from advisor.phases import MODULE_SLOTS
from advisor.placement import MEGATRON, Place
from advisor.types.architecture import ModelArchitecture
from advisor.types.case import TILED, Case, Training
from advisor.types.columns import RECOMPUTE_POLICIES

#: What is made again at little cost. A flash kernel makes its scores again by itself; those that others keep, join.
NEAR_FREE = ("layernorm", "activation", "moe_act", "mla_up_proj")
POLICY_MODULES: Mapping[str, tuple[str, ...]] = {"near_free": NEAR_FREE, "selective": ("core_attn",)}

#: Where the norms of a layer are: modules of their own, or inside the linear layer that follows, as Transformer Engine
#: builds them; there a norm is apart before experts and before latent attention only.
Norms = Literal["apart", "inside", "inside_but_latent"]
_INSIDE: Final[Mapping[str, tuple[str, ...]]] = {
    **MODULE_SLOTS,
    "layernorm": ("moe.input",),
    "activation": (),  # Megatron names none of a dense layer: its activation function goes with mlp
    "mlp": ("ffn.input", *MODULE_SLOTS["mlp"]),
}
#: Slots that a recompute module drops, by where the norms are.
SLOTS_BY_NORMS: Final[Mapping[Norms, Mapping[str, tuple[str, ...]]]] = {
    "apart": MODULE_SLOTS,
    "inside": _INSIDE,
    "inside_but_latent": {**_INSIDE, "layernorm": ("attention.input", "moe.input")},
}


def policy_is(place: Place, *policies: str) -> Number:
    """Whether the layout's recompute policy is one of these; a bool or a column of bools."""
    policy = place.layout.recompute
    if isinstance(policy, str):
        return policy in policies
    held = policy == RECOMPUTE_POLICIES.index(policies[0])
    for other in policies[1:]:
        held = held | (policy == RECOMPUTE_POLICIES.index(other))
    return held


def selects_operators(case: Case) -> bool:
    """Torchtitan's selective recompute wraps whole layers and keeps the results of chosen operators."""
    return case.training.framework == "torchtitan"


def recomputed_layers(place: Place) -> Number:
    """Layers of the stage that keep their input only: the first ones."""
    some = choose(policy_is(place, "blocks"), at_most(place.layout.recompute_layers, place.layers), 0)
    whole = ("every_k", "sqrt", "full", *(("selective",) if selects_operators(place.case) else ()))
    return choose(policy_is(place, *whole), place.layers, some)


def segment_layers(place: Place) -> Number:
    """Layers between two checkpoints: 1, k, or the whole root of the stage's layers."""
    every = getattr(place.layout, "recompute_every", place.case.layout.recompute_every)  # no search chooses it
    root = _whole_root(place.layers)
    return choose(policy_is(place, "every_k"), every, choose(policy_is(place, "sqrt"), root, 1))


def _whole_root(layers: Number) -> Number:
    if isinstance(layers, int):
        root = int(layers**0.5)
        return root if root * root >= layers else root + 1
    import numpy as np  # noqa: PLC0415

    return np.ceil(np.sqrt(layers))


def keeping_policies(place: Place, slot: str) -> tuple[int, ...]:
    """For each recompute policy 1 where it keeps the slot in every layer it does not recompute whole, else 0.

    For one layout, and for those that have the same policy, only that one is told.
    """
    policy, keeps_scores = place.layout.recompute, place.case.training.attention == "eager"
    norms = where_norms_are(place.model, place.case.training)
    if isinstance(policy, str):
        return (0 if slot in dropped_slots(policy, place.layout.recompute_modules, keeps_scores, norms) else 1,)
    kept = _keeping(slot, place.case.layout.recompute_modules, keeps_scores, norms)
    return (kept[policy],) if isinstance(policy, int) else kept


def where_norms_are(model: ModelArchitecture, training: Training) -> Norms:
    """Whether norms can be recomputed by themselves: Megatron's transformer_layer asks which of them exist."""
    if training.framework not in MEGATRON or training.implementation != "fused":
        return "apart"
    return "inside_but_latent" if model.attention.kind == "mla" else "inside"


@cache
def _keeping(slot: str, modules: tuple[str, ...], keeps_scores: bool, norms: Norms) -> tuple[int, ...]:
    return tuple(0 if slot in dropped_slots(name, modules, keeps_scores, norms) else 1 for name in RECOMPUTE_POLICIES)


def under_own_policy(place: Place, policies: tuple[int, ...]) -> Number:
    """What ``keeping_policies`` told, for the layout's own policy."""
    if len(policies) == 1:
        return policies[0]
    return 1 if all(policies) else pick(policies, place.layout.recompute)


def keeps(place: Place, slot: str) -> Number:
    """1 where the policy keeps the slot in every layer it does not recompute whole, 0 where it is recomputed."""
    return under_own_policy(place, keeping_policies(place, slot))


@cache
def dropped_slots(policy: str, modules: tuple[str, ...], keeps_scores: bool, norms: Norms) -> frozenset[str]:
    """Slots that a partial policy recomputes in each layer."""
    chosen = modules if policy == "modules" else POLICY_MODULES.get(policy, ())
    if policy == "near_free" and keeps_scores:
        chosen = (*chosen, "core_attn")
    if TILED in modules:
        chosen = (*chosen, TILED)
    return frozenset(slot for module in chosen for slot in SLOTS_BY_NORMS[norms][module])
