"""What leaves the GPU, and what is kept in host memory because of it.

DeepSpeed's CPU optimizer has the gradients on the host wherever its states rest, and what lies on NVMe passes through
buffers in CPU memory: offloading to NVMe takes CPU memory as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.columnwise import Number, choose
from advisor.phases import HOST, NVME
from advisor.placement import Place
from advisor.types.columns import OFFLOAD_TARGETS

#: Slots that Megatron's fine-grained offload has no module for (offload_modules): what a dense feed-forward, a router
#: and shared experts keep, and the experts' products.
_WITHOUT_MODULE = frozenset({
    "residual.masks", "ffn.input", "ffn.up", "ffn.activation", "ffn.adapters",
    "moe.input", "moe.router", "moe.activation", "moe.combined", "moe.shared",
})  # fmt: skip


def has_no_module(slot: str, *, norms_apart: bool) -> bool:
    """Whether the slot stays on the GPU under it; what norms keep does unless they are modules of their own."""
    return slot in _WITHOUT_MODULE or (slot == "norms.kept" and not norms_apart)


def offloads(place: Place, what: str, target: str = "") -> Number:
    """1 where the layout moves ``optimizer``, ``parameters`` or ``activations`` off the GPU, or just to ``target``."""
    chosen = getattr(place.layout, f"offload_{what}")
    if isinstance(chosen, str):
        return 1 if chosen == target or (not target and chosen != "none") else 0
    return choose(chosen == OFFLOAD_TARGETS.index(target) if target else chosen > 0, 1, 0)


def host_presence(place: Place) -> dict[str, Mapping[str, Number]]:
    """How often each slot of the host counts, in its memory and on NVMe."""
    recipe, framework = place.case.training.recipe, place.case.training.framework
    stepped_there = offloads(place, "optimizer") if framework == "deepspeed" else 0
    all_divided = choose(place.layout.zero_stage >= recipe.weights_divided_from, 1, 0)
    resting: dict[str, Mapping[str, Number]] = {
        f"host.{what}": {HOST: offloads(place, what, "cpu"), NVME: offloads(place, what, "nvme")}
        for what in ("optimizer", "parameters")
    }
    return resting | {
        "host.gradients": {HOST: stepped_there * all_divided},
        "host.step_buffers": {HOST: stepped_there * (1 - all_divided)},
        "host.state_buffers": {HOST: offloads(place, "optimizer", "nvme")},
        "host.weight_buffers": {HOST: offloads(place, "parameters", "nvme")},
    }
