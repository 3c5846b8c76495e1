"""When each slot is alive: the instants of a training step at which memory can peak, and how often a slot counts.

The backward pass frees activations from the last layer down while gradients grow, so the peak is at one of a few
instants. For each, a slot counts a number of times: 1 for a resident buffer, micro-batches in flight times layers for
what a layer keeps, 1 for a recomputed layer's tensors while it is differentiated.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from advisor.placement import Place, at_least, at_most, choose, pick, rounded_up
from advisor.types.case import Case
from advisor.types.columns import OFFLOAD_TARGETS, RECOMPUTE_POLICIES

Number = Any

FORWARD, LOSS, HEAD = "forward", "loss", "head"
LAST_FFN, LAST_ATTENTION = "backward_last_ffn", "backward_last_attention"
FIRST_FFN, FIRST_ATTENTION = "backward_first_ffn", "backward_first_attention"
EMBEDDING, OPTIMIZER = "backward_end", "optimizer_step"
PHASES = (FORWARD, LOSS, HEAD, LAST_FFN, LAST_ATTENTION, FIRST_FFN, FIRST_ATTENTION, EMBEDDING, OPTIMIZER)
PHASE_TITLES: Mapping[str, str] = {
    FORWARD: "end of the forward pass",
    LOSS: "backward pass of the loss",
    HEAD: "backward pass of the head",
    LAST_FFN: "backward pass of the last layer's feed-forward",
    LAST_ATTENTION: "backward pass of the last layer's attention",
    FIRST_FFN: "backward pass of the first layer's feed-forward",
    FIRST_ATTENTION: "backward pass of the first layer's attention",
    EMBEDDING: "end of the backward pass",
    OPTIMIZER: "optimizer step",
}
#: Not instants: where offloaded bytes rest instead of the GPU.
HOST, NVME = "host", "nvme"
_BACKWARD = (LAST_FFN, LAST_ATTENTION, FIRST_FFN, FIRST_ATTENTION)
_FIRST = (FIRST_FFN, FIRST_ATTENTION)
_UP_TO_LAST = (FORWARD, LOSS, HEAD, LAST_FFN, LAST_ATTENTION)

#: Slots that a recompute module drops from what a layer keeps, by Megatron's names of the modules.
MODULE_SLOTS: Mapping[str, tuple[str, ...]] = {
    "core_attn": ("attention.core",),
    "layernorm": ("attention.input", "ffn.input", "moe.input"),
    "activation": ("ffn.activation",),
    "moe_act": ("moe.activation",),
    "mla_up_proj": ("attention.mla_up", "attention.qkv"),
    "mlp": ("ffn.up", "ffn.activation"),
    "moe": ("moe.router", "moe.dispatched", "moe.up", "moe.activation", "moe.combined", "moe.shared"),
    "shared_experts": ("moe.shared",),
}
NEAR_FREE = ("layernorm", "activation", "moe_act", "core_attn", "mla_up_proj")
POLICY_MODULES: Mapping[str, tuple[str, ...]] = {"near_free": NEAR_FREE, "selective": ("core_attn",)}
WHOLE_LAYER_POLICIES = ("blocks", "every_k", "sqrt", "full")

_ATTENTION = (
    "attention.input", "attention.qkv", "attention.qk_norm", "attention.mla_latents", "attention.mla_up",
    "attention.core", "attention.output", "attention.output_copy", "attention.adapters",
)  # fmt: skip
_FEED_FORWARD = (
    "ffn.input", "ffn.up", "ffn.activation", "ffn.adapters",
    "moe.input", "moe.router", "moe.dispatched", "moe.up", "moe.activation", "moe.combined", "moe.shared",
)  # fmt: skip
_RESIDENT = (
    "optimizer.dense", "optimizer.experts", "adapters.weights", "adapters.optimizer", "overhead.workspace",
)  # fmt: skip
LAYER_SLOTS = ("norms.kept", "residual.masks", *_ATTENTION, *_FEED_FORWARD)
WORKING_SLOTS = ("working.ffn", "working.attention")

Presence = Mapping[str, Number]

#: Frameworks that can divide the weights themselves and gather them when needed.
SHARDING_FRAMEWORKS = ("fsdp1", "fsdp2", "torchtitan", "megatron_fsdp", "deepspeed")


# --- slots that do not belong to a layer ----------------------------------------------------------------------------


def outer_presence(place: Place) -> Mapping[str, Presence]:
    """For each slot outside the layers: how often it counts in each phase where it is alive."""
    resident = dict.fromkeys(PHASES, 1)
    head_forward = dict.fromkeys((FORWARD, LOSS, HEAD), 1)
    all_recomputed = choose(recomputed_layers(place) == place.layers, 1, 0)
    presence: dict[str, Presence] = dict.fromkeys(_RESIDENT, resident)
    weights = dict.fromkeys(PHASES, 1 - offloads(place, "parameters"))
    presence |= {"weights.dense": weights, "weights.experts": weights}
    presence |= {
        "weights.cast_copies": dict.fromkeys(_UP_TO_LAST, 1 - all_recomputed),
        "weights.cast_head": dict.fromkeys((FORWARD, LOSS, HEAD), all_recomputed),
        "weights.cast_layer": dict.fromkeys(_BACKWARD, all_recomputed),
        "gradients.unsynced": dict.fromkeys(PHASES[:-1], choose(place.micro_batches > 1, 1, 0)),
        "optimizer.scratch": {OPTIMIZER: 1},
        "optimizer.tensor_scratch": {OPTIMIZER: 1},
        "head.norm": head_forward,
        "head.input": head_forward,
        "loss.kept": {FORWARD: 1, LOSS: 1},
        "loss.softcap": {FORWARD: 1, LOSS: 1},
        "loss.forward": {FORWARD: 1},
        "loss.backward": {LOSS: 1},
        "loss.held_logits": dict.fromkeys((FORWARD, LOSS, HEAD, *_BACKWARD, EMBEDDING), 1),
        "working.head": {HEAD: 1},
        "buckets.gradients": _bucket_phases(place),
    }
    presence |= _gradient_presence(place) | _gather_presence(place)
    for what in ("optimizer", "parameters"):
        presence[f"host.{what}"] = {HOST: offloads(place, what, "cpu"), NVME: offloads(place, what, "nvme")}
    return presence


def _gradient_presence(place: Place) -> dict[str, Presence]:
    """Gradients appear from the head down to the embedding, and stay where they accumulate or have a buffer.

    Sharded weights' outer unit (head and embedding) is reduced last: until then its gradients count under ``gather``.
    """
    stay = 1 - _gradients_leave(place)
    buffered = keeps_main_gradient(place.case)
    before = stay if buffered else choose(place.micro_batches > 1, stay, 0)
    early = dict.fromkeys(_UP_TO_LAST, before)
    gathers = _gathers(place)
    waiting = 1 + gathers  # layers at the end of the backward pass whose gradient is not yet there
    most = at_least(before, stay * at_least(place.layers - waiting, 0) / place.layers)
    layers = early | dict.fromkeys(_FIRST, most) | {EMBEDDING: stay, OPTIMIZER: stay}
    outer = at_least(before, stay * (1 - gathers))
    head = early | dict.fromkeys((LAST_FFN, LAST_ATTENTION, *_FIRST, EMBEDDING), outer) | {OPTIMIZER: stay}
    embedding = early | dict.fromkeys(_FIRST, before) | {EMBEDDING: outer, OPTIMIZER: stay}
    return {
        "gradients.layers": layers,
        "gradients.experts": layers,
        "adapters.gradients": layers,
        "gradients.head": head,
        "gradients.embedding": embedding,
        "gradients.arriving": dict.fromkeys((HEAD, EMBEDDING), 1),
        "gradients.tied_sum": {EMBEDDING: stay * place.is_first * place.is_last},
    }


def keeps_main_gradient(case: Case) -> bool:
    """A gradient has a buffer of its own where the recipe says so, and wherever it is wider than its weight."""
    recipe = case.training.recipe
    return recipe.gradient_buffer or recipe.gradient_bytes > recipe.weight_bytes


def _gather_presence(place: Place) -> dict[str, Presence]:
    """Gathered weights: the outer unit through the step, a layer in use, the next one's buffer."""
    gathers, reshards = _gathers(place), choose(place.layout.reshard_after_forward, 1, 0)
    kept = gathers * (1 - reshards)
    layer = {
        FORWARD: gathers,
        LOSS: gathers * reshards,
        HEAD: gathers * reshards,
        LAST_FFN: 2 * gathers * reshards - kept,
        LAST_ATTENTION: 2 * gathers * reshards - kept,
        FIRST_FFN: gathers * (1 + reshards),
        FIRST_ATTENTION: gathers * (1 + reshards),
    }
    return {
        "gather.outer": dict.fromkeys((FORWARD, LOSS, HEAD, *_BACKWARD), gathers),
        "gather.layer": layer,
        "gather.kept": dict.fromkeys(_UP_TO_LAST, kept),
        "gather.gradient": dict.fromkeys((LAST_ATTENTION, FIRST_ATTENTION), gathers),
        "gather.gradient_half": dict.fromkeys((LAST_FFN, FIRST_FFN), gathers),
        "gather.head_gradient": dict.fromkeys(_BACKWARD, gathers),
        "gather.end": {EMBEDDING: gathers},
    }


def offloads(place: Place, what: str, target: str = "") -> Number:
    """1 where the layout moves ``optimizer``, ``parameters`` or ``activations`` off the GPU, or just to ``target``."""
    chosen = getattr(place.layout, f"offload_{what}")
    if isinstance(chosen, str):
        return 1 if chosen == target or (not target and chosen != "none") else 0
    return choose(chosen == OFFLOAD_TARGETS.index(target) if target else chosen > 0, 1, 0)


def _gradients_leave(place: Place) -> Number:
    """1 where gradients follow what is offloaded: DeepSpeed's with the optimizer, FSDP's with the parameters."""
    framework = place.case.training.framework
    if framework == "deepspeed":
        return offloads(place, "optimizer")
    return offloads(place, "parameters") if framework in SHARDING_FRAMEWORKS else 0


def _gathers(place: Place) -> Number:
    """1 where the ZeRO stage divides the weights among several ranks."""
    divided = place.layout.zero_stage >= place.case.training.recipe.weights_divided_from
    return choose(divided, choose(place.shard_ranks > 1, 1, 0), 0)


def _bucket_phases(place: Place) -> dict[str, Number]:
    kept = place.case.training.framework == "ddp"
    return dict.fromkeys(PHASES if kept else (*_BACKWARD, EMBEDDING), 1)


# --- slots of the layers --------------------------------------------------------------------------------------------


def layer_presence(place: Place, sums: tuple[int, ...]) -> Mapping[str, Presence]:
    """For each slot of one group of layers, given as running sums: how often it counts in each phase."""
    recomputed, segment = recomputed_layers(place), segment_layers(place)
    whole = pick(sums, place.end_layer) - pick(sums, place.first_layer + recomputed)
    made = place.in_flight * whole
    held = _on_gpu(place, made)
    last = pick(sums, place.end_layer) - pick(sums, place.end_layer - 1)
    first = pick(sums, place.first_layer + 1) - pick(sums, place.first_layer)
    all_recomputed = choose(recomputed == place.layers, 1, 0)
    last_segment = all_recomputed * (
        pick(sums, place.end_layer) - pick(sums, at_least(place.end_layer - segment, place.first_layer))
    )
    first_recomputed = choose(recomputed > 0, 1, 0)
    first_segment_end = at_most(place.first_layer + segment, place.end_layer)
    first_segment = first_recomputed * (pick(sums, first_segment_end) - pick(sums, place.first_layer))
    at_first = choose(first_recomputed == 1, first_segment, first)
    presence: dict[str, Presence] = {}
    for slot in LAYER_SLOTS:
        kept = keeps(place, slot)
        again = last * (1 - kept) * (1 - all_recomputed)
        at_last = held * kept + last_segment + again
        freed = 1 if slot in _FEED_FORWARD else 0
        presence[slot] = {
            FORWARD: held * kept,
            LOSS: held * kept,
            HEAD: held * kept,
            LAST_FFN: at_last,
            LAST_ATTENTION: at_last - freed * last,
            FIRST_FFN: at_first,
            FIRST_ATTENTION: at_first - freed * first,
            HOST: (made - held) * kept,
        }
    presence["working.ffn"] = {LAST_FFN: last, FIRST_FFN: first}
    presence["working.attention"] = {LAST_ATTENTION: last, FIRST_ATTENTION: first}
    return presence


#: Layers whose offloaded activations are on the GPU at once: the one in use and the one on its way.
LAYERS_ON_THE_WAY = 2


def _on_gpu(place: Place, held: Number) -> Number:
    """Layer-micro-batches on the GPU: with activation offload, those in use and on their way."""
    return choose(offloads(place, "activations"), at_most(held, LAYERS_ON_THE_WAY), held)


def checkpoint_presence(place: Place) -> Presence:
    """Layer inputs that whole-layer recompute keeps."""
    checkpoints = rounded_up(recomputed_layers(place), segment_layers(place))
    made = place.in_flight * checkpoints
    on_gpu = _on_gpu(place, made)
    held = dict.fromkeys(_UP_TO_LAST, on_gpu) | {HOST: made - on_gpu}
    return held | dict.fromkeys((FIRST_FFN, FIRST_ATTENTION), choose(checkpoints > 0, 1, 0))


def policy_is(place: Place, *policies: str) -> Number:
    """Whether the layout's recompute policy is one of these; a bool or a column of bools."""
    policy = place.layout.recompute
    if isinstance(policy, str):
        return policy in policies
    held = policy == RECOMPUTE_POLICIES.index(policies[0])
    for other in policies[1:]:
        held = held | (policy == RECOMPUTE_POLICIES.index(other))
    return held


def recomputed_layers(place: Place) -> Number:
    """Layers of the stage that keep their input only: the first ones."""
    some = choose(policy_is(place, "blocks"), at_most(place.layout.recompute_layers, place.layers), 0)
    return choose(policy_is(place, "every_k", "sqrt", "full"), place.layers, some)


def segment_layers(place: Place) -> Number:
    """Layers between two checkpoints: 1, k, or the whole root of the stage's layers."""
    every = getattr(place.layout, "recompute_every", 1)
    root = _whole_root(place.layers)
    return choose(policy_is(place, "every_k"), every, choose(policy_is(place, "sqrt"), root, 1))


def _whole_root(layers: Number) -> Number:
    if isinstance(layers, int):
        root = int(layers**0.5)
        return root if root * root >= layers else root + 1
    import numpy as np  # noqa: PLC0415

    return np.ceil(np.sqrt(layers))


def keeps(place: Place, slot: str) -> Number:
    """1 where the policy keeps the slot in every layer it does not recompute whole, 0 where it is recomputed."""
    policy = place.layout.recompute
    if isinstance(policy, str):
        return 0 if slot in dropped_slots(policy, place.layout.recompute_modules) else 1
    import numpy as np  # noqa: PLC0415

    modules = place.case.layout.recompute_modules
    table = np.asarray([0.0 if slot in dropped_slots(name, modules) else 1.0 for name in RECOMPUTE_POLICIES])
    return table[policy.astype(np.int64)]


@cache
def dropped_slots(policy: str, modules: tuple[str, ...]) -> frozenset[str]:
    """Slots that a partial policy recomputes in each layer."""
    chosen = modules if policy == "modules" else POLICY_MODULES.get(policy, ())
    return frozenset(slot for module in chosen for slot in MODULE_SLOTS[module])


# --- which term fills a slot ----------------------------------------------------------------------------------------


def choices(case: Case, *, masked: bool = False) -> dict[str, str]:
    """The choices that select the terms of a case. Nothing here varies with the layout, so columns share them."""
    model, training = case.model, case.training
    sharding = training.framework in SHARDING_FRAMEWORKS
    return {
        "base": "quantized" if training.base_weight_bytes else "plain",
        "cast": "autocast" if training.recipe.cast_copy_bytes else "none",
        "sync": "last" if training.gradient_sync == "last" and sharding else "every",
        "step": "foreach" if training.optimizer.step_matrix_bytes else "by_tensor",
        "adapters": "on" if training.method in {"lora", "dora", "qlora"} else "off",
        "norm": model.norm,
        "implementation": training.implementation,
        "residual_dropout": "on" if model.residual_dropout else "off",
        "attention": model.attention.kind,
        "kernel": "sdpa_masked" if masked and training.attention == "sdpa" else training.attention,
        "qkv": _qkv(case),
        "heads": "equal" if model.attention.heads == model.attention.kv_heads else "grouped",
        "qk_norm": model.attention.qk_norm,
        "ffn": _ffn(case),
        "experts": _experts(case),
        "loss": training.loss,
        "logits": "vocab_parallel" if training.framework in {"megatron", "megatron_fsdp"} else "upcast",
        "gather": "units" if sharding else "none",
        "main_gradient": _main_gradient(case),
        "tied": "on" if model.tied_embeddings else "off",
        "buckets": training.framework if training.framework in {"ddp", "deepspeed"} else "none",
    }


def _main_gradient(case: Case) -> str:
    """Megatron's fused layers add into the main gradient directly; elsewhere a narrower one is made and copied."""
    if not keeps_main_gradient(case) or case.training.framework not in {"single", "ddp"}:
        return "none"
    return "copied"


def _qkv(case: Case) -> str:
    attention = case.model.attention
    if not attention.fused_qkv or case.training.implementation == "fused":
        return "separate"
    return "fused_rotated" if attention.rotary_share > 0 else "fused"


def _ffn(case: Case) -> str:
    ffn = case.model.ffn
    if ffn is None or ffn.gated:
        return "gated"
    if ffn.activation == "relu":
        return "relu"
    return "plain_unfused" if ffn.activation == "gelu_new" and case.training.implementation == "reference" else "plain"


def _experts(case: Case) -> str:
    experts = case.model.experts
    if experts is None:
        return "none"
    if experts.dense_experts and case.training.implementation == "reference":
        return "every_token"
    return "clamped" if experts.clamped_activation else "routed"
