"""How often each slot counts at each instant of a step.

1 for a resident buffer, micro-batches in flight times layers for what a layer keeps, 1 for a recomputed layer's
tensors while it is differentiated. Memory at an instant is the sum over slots of count times bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from advisor.columnwise import Number, at_least, at_most, choose, nowhere, pick, rounded_up, whole_number
from advisor.offload import has_no_module, host_presence, offloads
from advisor.opposite import with_opposite
from advisor.phases import (
    BACKWARD,
    EMBEDDING,
    FEED_FORWARD_SLOTS,
    FIRST,
    FIRST_ATTENTION,
    FIRST_FFN,
    FORWARD,
    GRADIENT_SHARDS,
    HEAD,
    HOST,
    LAST_ATTENTION,
    LAST_FFN,
    LAYER_SLOTS,
    LOSS,
    OPTIMIZER,
    PHASES,
    RESIDENT_SLOTS,
    UP_TO_LAST,
)
from advisor.placement import MEGATRON, Place
from advisor.recompute import (
    keeping_policies,
    policy_is,
    recomputed_layers,
    segment_layers,
    selects_operators,
    under_own_policy,
    where_norms_are,
)
from advisor.types.case import Case

Presence = Mapping[str, Number]

#: Frameworks that can divide the weights themselves and gather them when needed.
SHARDING_FRAMEWORKS = ("fsdp1", "fsdp2", "torchtitan", "megatron_fsdp", "deepspeed")
#: Frameworks whose pipelines are PyTorch's own (torch.distributed.pipelining).
PYTORCH_PIPELINES = ("fsdp2", "torchtitan")


# --- slots that do not belong to a layer ----------------------------------------------------------------------------


def outer_presence(place: Place) -> Mapping[str, Presence]:
    """For each slot outside the layers: how often it counts in each phase where it is alive."""
    resident = dict.fromkeys(PHASES, 1)
    heads = dict.fromkeys((FORWARD, LOSS, HEAD), 1 + place.predictors)
    all_recomputed = choose(recomputed_layers(place) == place.layers, 1, 0)
    presence: dict[str, Presence] = dict.fromkeys(RESIDENT_SLOTS, resident)
    weights = dict.fromkeys(PHASES, 1 - offloads(place, "parameters"))
    presence |= {"weights.dense": weights, "weights.experts": weights}
    presence |= {
        "weights.cast_copies": dict.fromkeys(UP_TO_LAST, 1 - all_recomputed),
        "weights.cast_head": dict.fromkeys((FORWARD, LOSS, HEAD), all_recomputed),
        "weights.cast_layer": dict.fromkeys(BACKWARD, all_recomputed),
        "gradients.unsynced": _unsynced(place),
        "optimizer.scratch": {OPTIMIZER: 1},
        "optimizer.tensor_scratch": {OPTIMIZER: 1},
        "optimizer.gradient_copy": {OPTIMIZER: 1},
        "optimizer.weight_copy": {OPTIMIZER: 1},
        "head.norm": heads,
        "head.input": heads,
        "predictors.joined": dict.fromkeys((FORWARD, LOSS, HEAD), place.predictors),
        "loss.kept": {FORWARD: 1 + place.predictors, LOSS: 1 + place.predictors, HEAD: place.predictors},
        "loss.softcap": {FORWARD: 1, LOSS: 1},
        "loss.forward": {FORWARD: 1},
        "loss.backward": {LOSS: 1},
        "loss.held_logits": dict.fromkeys((FORWARD, LOSS, HEAD, *BACKWARD, EMBEDDING), 1),
        "working.head": {HEAD: 1},
        "working.dequantized": dict.fromkeys(BACKWARD, 1),
        "buckets.gradients": _bucket_phases(place),
    }
    presence |= _gradient_presence(place) | _gather_presence(place)
    return with_opposite(place, presence | host_presence(place))


def always_present(slots: Iterable[str]) -> Mapping[str, Presence]:
    """An article knows no instants: every slot counts once at each of them, and what is offloaded on the host."""
    resident = dict.fromkeys(PHASES, 1)
    return {slot: {HOST: 1} if slot.startswith("host.") else resident for slot in slots}


def _gradient_presence(place: Place) -> dict[str, Presence]:
    """Gradients appear from the head down to the embedding, and stay where they accumulate; a buffer stays anyway.

    Sharded weights' outer unit (head and embedding) is reduced last: until then its gradients count under ``gather``.
    """
    if place.case.training.optimizer.in_backward:
        return _stepped_at_once(place)
    stay = 1 - _gradients_leave(place)
    passing: dict[str, Presence] = {
        "gradients.arriving": dict.fromkeys((HEAD, EMBEDDING), 1),
        "gradients.tied_sum": {EMBEDDING: choose(place.layout.pipeline_parallel == 1, stay, 0)},
    }
    if keeps_main_gradient(place.case):
        resident = dict.fromkeys(PHASES, stay)
        return dict.fromkeys(GRADIENT_SHARDS, resident) | passing
    before = stay * _gradients_before(place)
    early = dict.fromkeys(UP_TO_LAST, before)
    gathers = _gathers(place)
    waiting = 1 + gathers  # layers at the end of the backward pass whose gradient is not yet there
    most = at_least(before, stay * at_least(place.layers - waiting, 0) / at_least(place.layers, 1))
    layers = early | dict.fromkeys(FIRST, most) | {EMBEDDING: stay, OPTIMIZER: stay}
    outer = at_least(before, stay * (1 - gathers))
    head = early | dict.fromkeys((LAST_FFN, LAST_ATTENTION, *FIRST, EMBEDDING), outer) | {OPTIMIZER: stay}
    embedding = early | dict.fromkeys(FIRST, before) | {EMBEDDING: outer, OPTIMIZER: stay}
    return {
        "gradients.layers": layers,
        "gradients.experts": layers,
        "adapters.gradients": layers,
        "gradients.head": head,
        "gradients.embedding": embedding,
        **passing,
    }


def _gradients_before(place: Place) -> Number:
    """1 where accumulated gradients rest on the rank, divided, before its last backward pass."""
    return (1 - _reduces_at_last(place)) * choose(place.micro_batches > 1, 1, 0)


def _reduces_at_last(place: Place) -> Number:
    """1 where only the last micro-batch reduces: as asked, or by PyTorch's pipeline stages, which hold FSDP2 back."""
    training = place.case.training
    if training.gradient_sync == "last":
        return 1 if training.framework in SHARDING_FRAMEWORKS else 0
    held_back = training.framework in PYTORCH_PIPELINES
    return choose(place.layout.pipeline_parallel > 1, 1, 0) if held_back else 0


def _stepped_at_once(place: Place) -> dict[str, Presence]:
    """Gradients of an optimizer that steps in the backward pass: one layer's; a tied head's until the embedding's."""
    layer = dict.fromkeys(BACKWARD, 1 / at_least(place.layers, 1))
    tied = dict.fromkeys(BACKWARD, 1) if place.model.tied_embeddings else {}
    return {
        "gradients.layers": layer,
        "gradients.experts": layer,
        "adapters.gradients": layer,
        "gradients.head": {HEAD: 1, **tied, EMBEDDING: 1 if tied else 0},
        "gradients.embedding": {EMBEDDING: 1},
    }


def keeps_main_gradient(case: Case) -> bool:
    """A gradient has a buffer of its own where the recipe says so, and wherever it is wider than its weight."""
    recipe = case.training.recipe
    return recipe.gradient_buffer or recipe.gradient_bytes > recipe.weight_bytes


def _unsynced(place: Place) -> Presence:
    """Whole gradients wait for the last backward pass, which reduces and frees them layer by layer."""
    several = _reduces_at_last(place) * choose(place.micro_batches > 1, 1, 0)
    return dict.fromkeys(UP_TO_LAST, several) | dict.fromkeys(FIRST, several / at_least(place.layers, 1))


def _gather_presence(place: Place) -> dict[str, Presence]:
    """Gathered weights: the outer unit through the step, a layer in use, the next one's buffer."""
    gathers, reshards = _gathers(place), choose(place.layout.reshard_after_forward, 1, 0)
    kept = gathers * (1 - reshards)
    layer = {
        FORWARD: gathers,
        LOSS: gathers * reshards,
        HEAD: gathers * reshards,
        LAST_FFN: 2 * gathers * reshards,
        LAST_ATTENTION: 2 * gathers * reshards,
        FIRST_FFN: gathers * (1 + reshards),
        FIRST_ATTENTION: gathers * (1 + reshards),
    }
    return {
        "gather.outer": dict.fromkeys((FORWARD, LOSS, HEAD, *BACKWARD), gathers),
        "gather.layer": layer,
        "gather.kept": dict.fromkeys((FORWARD, LOSS, HEAD), kept),
        "gather.left": dict.fromkeys((LAST_FFN, LAST_ATTENTION), kept),
        "gather.gradient": dict.fromkeys((LAST_ATTENTION, FIRST_ATTENTION), gathers),
        "gather.gradient_half": dict.fromkeys((LAST_FFN, FIRST_FFN), gathers),
        "gather.head_gradient": dict.fromkeys(BACKWARD, gathers),
        "gather.end": {EMBEDDING: gathers},
        "gather.held_gradients": dict.fromkeys(FIRST, gathers * (place.layers - 1)),
    }


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
    return dict.fromkeys(PHASES if kept else (*BACKWARD, EMBEDDING), 1)


# --- slots of the layers --------------------------------------------------------------------------------------------


def layer_presence(place: Place, sums: tuple[int, ...]) -> Mapping[str, Presence]:
    """For each slot of one group of layers, given as running sums: how often it counts in each phase.

    Counts are whole, and slots that count alike share one table: their bytes may be added up first.
    """
    recomputed, segment = recomputed_layers(place), segment_layers(place)
    whole = pick(sums, place.end_layer) - pick(sums, place.first_layer + recomputed)
    predictors = place.predictors * (sums[-1] - sums[-2])
    made = whole_number(place.in_flight * whole) + predictors * choose(recomputed == place.layers, 0, 1)
    held = _on_gpu(place, made)
    by_module = held if held is made else choose(_moves_modules(place), made, held)
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
    again = last * (1 - all_recomputed)
    variants: dict[tuple[Any, bool, bool], Presence] = {}

    def alive(kept: Number, freed: bool, held: Number) -> Presence:
        """Slots that are kept, freed and moved alike share one table."""
        before = held if isinstance(kept, int) and kept == 1 else held * kept
        at_last = before + last_segment + again * (1 - kept)
        return {
            FORWARD: before,
            LOSS: before,
            HEAD: before,
            LAST_FFN: at_last,
            LAST_ATTENTION: at_last - freed * last,
            FIRST_FFN: at_first,
            FIRST_ATTENTION: at_first - freed * first,
            HOST: 0 if held is made else (made - held) * kept,
        }

    presence: dict[str, Presence] = {}
    apart = where_norms_are(place.model, place.case.training) != "inside"
    for slot in LAYER_SLOTS:
        kind = keeping_policies(place, slot), slot in FEED_FORWARD_SLOTS, has_no_module(slot, norms_apart=apart)
        if kind not in variants:
            kept, freed, stays = kind
            variants[kind] = alive(under_own_policy(place, kept), freed, by_module if stays else held)
        presence[slot] = variants[kind]
    presence["working.ffn"] = {LAST_FFN: last, FIRST_FFN: first}
    presence["working.attention"] = presence["working.context"] = {LAST_ATTENTION: last, FIRST_ATTENTION: first}
    return presence


#: Layers whose offloaded activations are on the GPU at once: the one in use and the one on its way.
LAYERS_ON_THE_WAY = 2


def _on_gpu(place: Place, held: Number) -> Number:
    """Layer-micro-batches on the GPU: with activation offload, those in use and on their way."""
    away = offloads(place, "activations")
    return held if nowhere(away) else choose(away, at_most(held, LAYERS_ON_THE_WAY), held)


def _moves_modules(place: Place) -> Number:
    """1 where Megatron offloads by module: its offload of whole layers knows neither pipelines nor recompute."""
    if place.case.training.framework not in MEGATRON:
        return 0
    return choose(place.layout.pipeline_parallel > 1, 1, choose(policy_is(place, "none"), 0, 1))


def selected_presence(place: Place) -> Presence:
    """What per-operator selective recompute keeps beside a layer's input."""
    selective = choose(policy_is(place, "selective"), 1, 0) if selects_operators(place.case) else 0
    return {phase: count * selective for phase, count in checkpoint_presence(place).items()}


def checkpoint_presence(place: Place) -> Presence:
    """Layer inputs that whole-layer recompute keeps."""
    recomputed = recomputed_layers(place)
    checkpoints = rounded_up(recomputed, segment_layers(place))
    made = whole_number(place.in_flight * checkpoints) + place.predictors * choose(recomputed == place.layers, 1, 0)
    on_gpu = _on_gpu(place, made)
    held = dict.fromkeys(UP_TO_LAST, on_gpu) | {HOST: 0 if on_gpu is made else made - on_gpu}
    return held | dict.fromkeys((FIRST_FFN, FIRST_ATTENTION), choose(checkpoints > 0, 1, 0))
