"""What lives for a moment: gathered weights, gradients on their way, backward temporaries, buckets, workspace."""

from advisor.formula import term

# --- a layer's backward pass -------------------------------------------------------------------------------------------


@term("working.ffn", source="transformers-code LlamaMLP", ffn_kind="dense", ffn="gated", implementation="reference")
def working_gated_reference(T, T_f, h, f, w, t_s, x_s, tp):
    """Gradients of hidden states, gathered too where they are split, and of the activated product under SwiGLU."""
    return T * h * w * (1 / t_s + x_s) + T_f * 2 * f * w / tp


@term("working.ffn", source="liger-code LigerSiLUMul", ffn_kind="dense", ffn="gated", implementation="fused")
def working_gated_fused(T, T_f, h, f, w, t_s, x_s, tp):
    """Gradients of hidden states, gathered too where they are split, and of the product; gate's and up's overwrite."""
    return T * h * w * (1 / t_s + x_s) + T_f * f * w / tp


@term("working.ffn", source="korthikanti-2022 §4.1", ffn_kind="dense", ffn=("plain", "plain_unfused", "relu"))
def working_plain(T, T_f, h, f, w, t_s, x_s, tp):
    """Gradients of hidden states, gathered too where they are split, and of both sides of the activation function."""
    return T * h * w * (1 / t_s + x_s) + T_f * 2 * f * w / tp


@term("working.ffn", source="transformers-code grouped_mm experts", ffn_kind="moe")
def working_experts(T, k, h, f_e, w, i_e, etp, t_s):
    """Gradients of the experts' outputs, scattered inputs and products."""
    return T * k * i_e * 2 * w * (etp * h + f_e) / t_s


@term("working.attention", source="flash-attention-2-2023 §3.2", kernel=("flash", "sdpa", "sdpa_masked"))
def working_attention_flash(T, a, d, d_v, w, w_32, tp):
    """Gradients of q, k and v at the query heads' width, and flash's fp32 accumulator of q's gradient."""
    return T * a * (2 * d * w + d_v * w + d * w_32) / tp


@term(
    "working.attention",
    source="transformer-engine-code scaled_softmax_backward",
    kernel="eager",
    implementation="fused",
)
def working_attention_unfused(T, s, a, w, u_a, tp):
    """The probabilities' gradient, which the softmax's overwrites in place; with dropout, its own before it."""
    return T * a * s * w * (1 + u_a) / tp


@term("working.attention", source="pytorch-code softmax backward", kernel="eager", implementation="reference")
def working_attention_eager(T, s, a, w, w_32, u_32, tp):
    """Gradients of probabilities and scores: with their fp32 cast in low precision, three fp32 tensors in fp32."""
    return T * a * s * ((w + w_32) * u_32 + 3 * w_32 * (1 - u_32)) / tp


@term("working.context", source="transformer-engine-code AttnFuncWithCPAndKVP2P", context="ring")
def working_context_ring(T, g, d, d_v, w, x_c, tp):
    """Keys, values and their gradients of two blocks of the ring: the one in use and the one on its way."""
    return 4 * T * g * (d + d_v) * w * x_c / tp


@term("working.context", source="transformer-engine-code AttnFuncWithCPAndKVAllGather", context="all_gather")
def working_context_gathered(T, cp, g, d, d_v, w, x_c, tp):
    """Keys and values of the whole sequence, and their gradients before they are scattered."""
    return 2 * T * cp * g * (d + d_v) * w * x_c / tp


@term("working.head", source="transformers-code LlamaRMSNorm", loss=("standard", "fused_logits", "chunked"))
def working_head(T, V, h, w, w_32, t_v, t_s, x_s, u_h):
    """The logits' gradient in the weights' dtype, the norm's fp32 temporaries, gathered states and their gradient."""
    return (T * V * w / t_v + 4 * T * h * w_32 / t_s + 2 * T * h * w * x_s) * u_h


@term("working.head", source="transformers-code LlamaRMSNorm", loss="fused")
def working_head_fused(T, h, w, w_32, t_s, x_s, u_h):
    """The final norm's fp32 temporaries; where the sequence is split, gathered states and their gradient."""
    return (4 * T * h * w_32 / t_s + 2 * T * h * w * x_s) * u_h


@term("working.dequantized", source="bitsandbytes-code dequantize_4bit", base="quantized")
def working_dequantized(N_m, w_c):
    """The largest quantised matrix of a layer, expanded to be multiplied."""
    return N_m * w_c


# --- sharded weights ---------------------------------------------------------------------------------------------------


@term("gather.outer", source="pytorch-fsdp2 FSDPParamGroup", gather="units")
def gather_outer(N_r, w_c):
    """The outer unit stays gathered from the forward pass to the end of the backward pass."""
    return N_r * w_c


@term("gather.layer", source="pytorch-fsdp2 FSDPParamGroup", gather="units")
def gather_layer(N_u, w_n):
    """One layer's gathered weights: those in use, or the buffer that the next ones arrive in."""
    return N_u * w_n


@term("gather.kept", source="pytorch-fsdp2 FSDPParamGroup", gather="units")
def gather_kept(P_t, P_r, P_e, N_r, tp, ep, etp, w_n):
    """Without resharding after forward every gathered layer stays until its backward pass."""
    return (P_t / tp + P_r + P_e / (ep * etp) - N_r) * w_n


@term("gather.left", source="pytorch-fsdp2 FSDPParamGroup", gather="units")
def gather_left(P_t, P_r, P_e, N_r, N_u, tp, ep, etp, w_n):
    """Of those, the ones left when the last layer's gradients are reduced: its own weights are freed by then."""
    return (P_t / tp + P_r + P_e / (ep * etp) - N_r - N_u) * w_n


@term("gather.gradient", source="pytorch-code FullyShardedDataParallel", gather="units", reduction="in_place")
def gather_gradient_flat(N_g, w_c):
    """One layer's whole gradient, flat: it is reduced from where it lies."""
    return N_g * w_c


@term("gather.gradient_half", source="pytorch-code FullyShardedDataParallel", gather="units", reduction="in_place")
def gather_gradient_flat_half(N_g, w_c):
    """The flat gradient is allocated whole when its first part arrives."""
    return N_g * w_c


@term("gather.gradient", source="pytorch-fsdp2 FSDPParamGroup", gather="units", reduction="copied")
def gather_gradient(N_g, w_c, w_d):
    """One layer's whole gradient, and the buffer from which the layer before it is reduced."""
    return N_g * (w_c + w_d)


@term("gather.gradient_half", source="pytorch-fsdp2 FSDPParamGroup", gather="units", reduction="copied")
def gather_gradient_half(N_d, N_g, w_c, w_d):
    """While the feed-forward's tensors are all alive: the gradients made so far, and the layer before's buffer."""
    return N_d * w_c + N_g * w_d


@term("gather.head_gradient", source="pytorch-fsdp2 FSDPParamGroup", gather="units")
def gather_head_gradient(G_h, tp, w_c):
    """The head's whole gradient waits for the embedding's, with which it is reduced."""
    return G_h / tp * w_c


@term("gather.held_gradients", source="pytorch-code register_multi_grad_hook", frozen_units="fsdp1")
def gather_held_gradients(T, h, w_x, t_s):
    """FSDP1's hook on the inputs of a unit that is not trained holds them and their gradients to the end of the pass."""
    return 2 * T * h * w_x / t_s


@term("gather.end", source="pytorch-fsdp2 FSDPParamGroup", gather="units")
def gather_end(G_h, G_b, tp, w_c, w_d):
    """The outer unit's whole gradient and the buffer it is reduced from, at the end of the backward pass."""
    return (G_h / tp + G_b) * (w_c + w_d)


@term("buckets.gradients", source="deepspeed-code stage_1_and_2", buckets="deepspeed")
def buckets_deepspeed(B_r, w_d):
    """Reduction buckets: one being filled and one being reduced."""
    return 2 * B_r * w_d


@term("buckets.gradients", source="pytorch-code DistributedDataParallel", buckets="ddp")
def buckets_ddp(G_t, G_r, G_h, G_b, G_e, P_a, w_g):
    """Reducer buckets that mirror the gradients."""
    return (G_t + G_r + G_h + G_b + G_e + P_a) * w_g


@term("overhead.workspace", source="pytorch-code CUBLAS_WORKSPACE_CONFIG")
def overhead_workspace(B_x, n_b):
    """Workspaces of the matrix library, taken through the allocator; Transformer Engine holds its own."""
    return n_b * B_x


TERMS = (
    working_gated_reference,
    working_gated_fused,
    working_plain,
    working_experts,
    working_attention_flash,
    working_attention_unfused,
    working_attention_eager,
    working_context_ring,
    working_context_gathered,
    working_head,
    working_head_fused,
    working_dequantized,
    gather_outer,
    gather_layer,
    gather_kept,
    gather_left,
    gather_gradient_flat,
    gather_gradient_flat_half,
    gather_gradient,
    gather_gradient_half,
    gather_head_gradient,
    gather_held_gradients,
    gather_end,
    buckets_deepspeed,
    buckets_ddp,
    overhead_workspace,
)
