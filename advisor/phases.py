"""The instants of a training step at which memory can peak, and the slots that a layer fills.

The backward pass frees activations from the last layer down while gradients grow, so the peak is at one of a few
instants: the loss, the last layer, the first layer, the end of the backward pass, the optimizer step.
"""

from __future__ import annotations

from collections.abc import Mapping

from advisor.types.case import TILED

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
BACKWARD = (LAST_FFN, LAST_ATTENTION, FIRST_FFN, FIRST_ATTENTION)
FIRST = (FIRST_FFN, FIRST_ATTENTION)
UP_TO_LAST = (FORWARD, LOSS, HEAD, LAST_FFN, LAST_ATTENTION)

ATTENTION_SLOTS = (
    "attention.input", "attention.qkv", "attention.qk_norm", "attention.mla_latents", "attention.mla_up",
    "attention.core", "attention.output", "attention.output_copy", "attention.adapters",
)  # fmt: skip
FEED_FORWARD_SLOTS = (
    "ffn.input", "ffn.up", "ffn.activation", "ffn.adapters",
    "moe.input", "moe.router", "moe.dispatched", "moe.up", "moe.activation", "moe.combined", "moe.shared",
)  # fmt: skip
RESIDENT_SLOTS = (
    "optimizer.dense", "optimizer.experts", "adapters.weights", "adapters.optimizer", "overhead.workspace",
    "weights.scales",
)  # fmt: skip
#: Gradients after they are reduced, one slot a part of the model.
GRADIENT_SHARDS = (
    "gradients.layers", "gradients.experts", "gradients.head", "gradients.embedding", "adapters.gradients",
)  # fmt: skip
LAYER_SLOTS = ("norms.kept", "residual.masks", *ATTENTION_SLOTS, *FEED_FORWARD_SLOTS)
WORKING_SLOTS = ("working.ffn", "working.attention", "working.context")
CHECKPOINT_SLOTS = ("checkpoint.input", "checkpoint.selected")

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
    TILED: ("ffn.up", "ffn.activation"),
}
