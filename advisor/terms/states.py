"""Weights, gradients and optimizer states: what rests on a rank from step to step."""

from advisor.formula import term

# --- weights ---------------------------------------------------------------------------------------------------------


@term("weights.dense", source="zero-2020 §5", base="plain")
def weights_dense(P_t, P_l, P_r, tp, w_f, w_w, z_w):
    """Resident weights of attention, dense feed-forward, norms, embedding and head."""
    return (P_l / tp * w_f + ((P_t - P_l) / tp + P_r) * w_w) / z_w


@term("weights.dense", source="qlora-2023 §3", base="quantized")
def weights_dense_quantized(P_t, P_l, P_r, tp, w_b, w_w, z_b, z_w):
    """Quantised layer matrices; what lies outside stays unquantised."""
    return P_l / tp * w_b / z_b + ((P_t - P_l) / tp + P_r) * w_w / z_w


@term("weights.experts", source="qlora-2023 §3", expert_base="quantized")
def weights_experts_quantized(P_e, ep, etp, w_b, z_b):
    """Quantised expert matrices."""
    return P_e / (ep * etp) * w_b / z_b


@term("weights.scales", source="bitsandbytes-code QuantState", base="quantized", expert_base="quantized")
def weights_scales(P_l, P_e, tp, ep, etp, w_j):
    """Block scales of quantised matrices: beside the weights, so no rank divides them and no offload moves them."""
    return (P_l / tp + P_e / (ep * etp)) * w_j


@term("weights.scales", source="bitsandbytes-code QuantState", base="quantized", expert_base="plain")
def weights_scales_dense(P_l, tp, w_j):
    """Block scales of quantised matrices outside the experts, which stay unquantised."""
    return P_l / tp * w_j


@term("weights.experts", source="zero-2020 §5", expert_base="plain")
def weights_experts(P_e, ep, etp, w_f, y_w):
    """Resident weights of the routed experts; expert parallel divides them, ZeRO divides what expert data ranks share."""
    return P_e / (ep * etp) * w_f / y_w


@term("weights.cast_copies", source="pytorch-amp", cast="autocast")
def weights_cast_copies(P_c, P_e, tp, ep, etp, w_k, z_w):
    """Autocast's low-precision copies of the matrices, made in the forward pass and kept for the backward pass."""
    return (P_c / tp + P_e / (ep * etp)) * w_k / z_w


@term("weights.cast_head", source="pytorch-amp", cast="autocast")
def weights_cast_head(N_h, tp, w_k):
    """With full recompute the head's copy is the one that stays."""
    return N_h * w_k / tp


@term("weights.cast_layer", source="pytorch-amp", cast="autocast")
def weights_cast_layer(N_u, w_k):
    """The copies of the layer that is recomputed."""
    return N_u * w_k


# --- gradients -------------------------------------------------------------------------------------------------------


@term("gradients.layers", source="zero-2020 §5")
def gradients_layers(G_t, G_r, tp, w_g, z_g):
    """Gradients of the layers' dense weights."""
    return (G_t / tp + G_r) * w_g / z_g


@term("gradients.head", source="zero-2020 §5")
def gradients_head(G_h, tp, w_g, z_g):
    """Gradients of head and final norm: the first that the backward pass makes."""
    return G_h / tp * w_g / z_g


@term("gradients.embedding", source="zero-2020 §5")
def gradients_embedding(G_b, w_g, z_g):
    """Gradient of the embedding: the last that the backward pass makes."""
    return G_b * w_g / z_g


@term("gradients.tied_sum", source="pytorch-code engine input buffer", tied="on")
def gradients_tied_sum(G_h, tp, w_g):
    """A shared table's gradient comes from head and embedding; their sum is a third tensor for a moment."""
    return 2 * G_h / tp * w_g


@term("gradients.arriving", source="pytorch-code AccumulateGrad", main_gradient="copied")
def gradients_arriving(N_t, w_w):
    """A gradient in the weight's dtype on its way into the wider main gradient."""
    return N_t * w_w


@term("gradients.experts", source="zero-2020 §5")
def gradients_experts(G_e, ep, etp, w_g, y_g):
    """Gradients of the routed experts."""
    return G_e / (ep * etp) * w_g / y_g


@term("gradients.unsynced", source="pytorch-fsdp2", sync="last")
def gradients_unsynced(G_t, G_r, G_h, G_b, G_e, tp, ep, etp, w_d):
    """Whole gradients that accumulate on each rank while synchronisation is skipped until the last micro-batch."""
    return ((G_t + G_h) / tp + G_b + G_r + G_e / (ep * etp)) * w_d


# --- optimizer -------------------------------------------------------------------------------------------------------


@term("optimizer.dense", source="zero-2020 §3.1")
def optimizer_dense(G_t, G_r, G_h, G_b, tp, w_m, w_o, z_o, phi):
    """Master copies and optimizer states of the dense weights: layer matrices, and what is treated apart."""
    return (G_t / tp * w_m + (G_r + G_h / tp + G_b) * w_o) / z_o * phi


@term("optimizer.experts", source="zero-2020 §3.1")
def optimizer_experts(G_e, ep, etp, w_m, y_o, phi):
    """Master copies and optimizer states of the routed experts."""
    return G_e / (ep * etp) * w_m / y_o * phi


@term("optimizer.scratch", source="pytorch-optim", step="foreach")
def optimizer_scratch(G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, w_t, z_o, y_o, phi):
    """Temporaries of one optimizer step over all of the rank's parameters at once."""
    return (((G_t + G_h) / tp + G_b + G_r + P_a) / z_o + G_e / (ep * etp) / y_o) * w_t * phi


@term("optimizer.gradient_copy", source="deepspeed-code stage3.step", steps="by_group")
def optimizer_gradient_copy_grouped(G_t, G_r, G_h, G_b, G_e, tp, ep, etp, w_s, z_o, y_o, s_g, phi):
    """The rank's share of gradients, flattened and copied to fp32 for the step of a group of them."""
    return (((G_t + G_h) / tp + G_b + G_r) / z_o + G_e / (ep * etp) / y_o) * s_g * w_s * phi


@term("optimizer.gradient_copy", source="megatron-distributed-optimizer", steps="at_once")
def optimizer_gradient_copy(G_t, G_r, G_h, G_b, G_e, tp, ep, etp, w_s, z_o, y_o, phi):
    """The rank's share of narrower gradients, copied to fp32 for the step."""
    return (((G_t + G_h) / tp + G_b + G_r) / z_o + G_e / (ep * etp) / y_o) * w_s * phi


@term("optimizer.weight_copy", source="transformer-engine-code quantize_master_weights", stepped="recast")
def optimizer_weight_copy(G_t, G_e, tp, ep, etp, w_e, z_o, y_o, phi):
    """The rank's share of stepped matrices, all cast to the width they are quantised from before the first one is."""
    return (G_t / tp / z_o + G_e / (ep * etp) / y_o) * w_e * phi


@term("optimizer.tensor_scratch", source="pytorch-optim", step="by_tensor")
def optimizer_tensor_scratch(N_t, w_v):
    """Temporaries of one optimizer step over one tensor, the largest."""
    return N_t * w_v


# --- adapters --------------------------------------------------------------------------------------------------------


@term("adapters.weights", source="lora-2021 §4", adapters="on")
def adapters_weights(P_a, w_p, z_w):
    """Low-rank matrices A and B."""
    return P_a * w_p / z_w


@term("adapters.gradients", source="lora-2021 §4", adapters="on")
def adapters_gradients(P_a, w_a, z_g):
    """Gradients of the adapters."""
    return P_a * w_a / z_g


@term("adapters.optimizer", source="lora-2021 §4", adapters="on")
def adapters_optimizer(P_a, w_q, z_o, phi):
    """Optimizer states of the adapters, as far as they are not offloaded."""
    return P_a * w_q / z_o * phi


TERMS = (
    weights_dense,
    weights_dense_quantized,
    weights_experts_quantized,
    weights_scales,
    weights_scales_dense,
    weights_experts,
    weights_cast_copies,
    weights_cast_head,
    weights_cast_layer,
    gradients_layers,
    gradients_head,
    gradients_embedding,
    gradients_tied_sum,
    gradients_arriving,
    gradients_experts,
    gradients_unsynced,
    optimizer_dense,
    optimizer_experts,
    optimizer_scratch,
    optimizer_gradient_copy_grouped,
    optimizer_gradient_copy,
    optimizer_weight_copy,
    optimizer_tensor_scratch,
    adapters_weights,
    adapters_gradients,
    adapters_optimizer,
)
