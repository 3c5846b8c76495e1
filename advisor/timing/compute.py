"""Seconds that one rank computes in a step: matrices, attention, element-wise kernels, launches, the optimizer.

``n_p`` counts passes over one layer: a forward pass is one, a backward pass two in matrices (inputs, weights).
"""

from advisor.formula import maximum, term

# --- matrices --------------------------------------------------------------------------------------------------------


@term("matrices.attention", source="calculon-2023 §3")
def matrices_attention(n_p, T, n_0, F_a, R_m, eta_m, tp):
    """Projections of attention; a matrix multiplication costs a few tokens more than it has."""
    return n_p * (T + n_0) * F_a / tp / (R_m * eta_m)


@term("matrices.up_projections", source="calculon-2023 §3", attention="mla")
def matrices_up(n_p, T, n_0, F_u, R_m, eta_m, tp):
    """Up-projections made again for the backward pass."""
    return n_p * (T + n_0) * F_u / tp / (R_m * eta_m)


@term("matrices.dense", source="calculon-2023 §3")
def matrices_dense(n_p, T, n_0, F_f, R_m, eta_m, tp):
    """The dense feed-forward."""
    return n_p * (T + n_0) * F_f / tp / (R_m * eta_m)


@term("matrices.experts", source="megablocks-2022 §5")
def matrices_experts(n_p, T, k, i_e, E, n_0, F_e, R_m, eta_m, eta_x, tp, ep, etp):
    """The routed experts of the busiest rank, each a matrix multiplication of its own tokens."""
    return n_p * (T * k * i_e / tp + n_0 * E / (ep * etp)) * F_e / (R_m * eta_m * eta_x)


@term("matrices.shared", source="deepseek-v3-2024 §2.1.2")
def matrices_shared(n_p, T, n_0, F_s, R_m, eta_m, tp):
    """Router and shared experts."""
    return n_p * (T + n_0) * F_s / tp / (R_m * eta_m)


@term("matrices.head", source="calculon-2023 §3")
def matrices_head(n_p, T, n_0, F_v, R_b, eta_b, tp):
    """Logits and their gradients, in bf16."""
    return n_p * (T + n_0) * F_v / tp / (R_b * eta_b)


@term("matrices.adapters", source="lora-2021 §4", adapters="on")
def matrices_adapters(n_p, T, F_l, R_b, eta_b, tp):
    """The adapters' own matrices on the whole stage."""
    return n_p * T * F_l / tp / (R_b * eta_b)


# --- attention -------------------------------------------------------------------------------------------------------


@term("attention.scores", source="flash-attention-2-2023 §3")
def scores(n_p, T, F_k, R_b, eta_a, tp):
    """The attention kernel; its backward pass counts two and a half, since it makes the scores again."""
    return n_p * T * F_k / tp / (R_b * eta_a)


# --- element-wise ----------------------------------------------------------------------------------------------------


@term("elementwise.dense", source="korthikanti-2022 §4", ffn_kind="dense", kernels="fused", ffn="gated")
def elementwise_gated(n_p, T, h, a, g, d, f, w, W_m, eta_h, t_s, tp):
    """Two norms with residual sums, rotation, gated activation: what fused kernels read and write."""
    return n_p * T * w * (10 * h / t_s + (2 * (a + g) * d + 3 * f) / tp) / (W_m * eta_h)


@term("elementwise.dense", source="korthikanti-2022 §4", ffn_kind="dense", kernels="fused", ffn="plain")
def elementwise_plain(n_p, T, h, a, g, d, f, w, W_m, eta_h, t_s, tp):
    """As with a gate, and one input of the activation function less."""
    return n_p * T * w * (10 * h / t_s + (2 * (a + g) * d + 2 * f) / tp) / (W_m * eta_h)


@term("elementwise.dense", source="transformers-code LlamaRMSNorm", ffn_kind="dense", kernels="unfused", ffn="gated")
def elementwise_gated_unfused(n_p, T, h, a, g, d, f, w, W_m, eta_h, t_s, tp):
    """RMSNorm in fp32, rotation and gate, each operation a kernel of its own."""
    return n_p * T * w * (34 * h / t_s + (10 * (a + g) * d + 5 * f) / tp) / (W_m * eta_h)


@term("elementwise.dense", source="pytorch-code layer_norm", ffn_kind="dense", kernels="unfused", ffn="plain")
def elementwise_plain_unfused(n_p, T, h, a, g, d, f, w, W_m, eta_h, t_s, tp):
    """LayerNorm and GELU are single kernels; sums and biases are kernels of their own."""
    return n_p * T * w * (10 * h / t_s + (2 * (a + 2 * g) * d + 4 * f) / tp) / (W_m * eta_h)


@term("elementwise.experts", source="megablocks-2022 §5", ffn_kind="moe")
def elementwise_experts(n_p, T, h, a, g, d, f_e, f_s, k, w, W_m, eta_h, t_s, tp):
    """As in a dense layer, and each routed copy of a token sorted, unsorted and weighed."""
    return n_p * T * w * (10 * h / t_s + (2 * (a + g) * d + 8 * k * h + 3 * (k * f_e + f_s)) / tp) / (W_m * eta_h)


@term("elementwise.scores", source="korthikanti-2022 §4.1", scores="eager")
def elementwise_scores(n_p, T, s, a, w, W_m, eta_h, tp):
    """Scores written, masked, normalised and read, each time whole."""
    return n_p * T * s * a * 5 * w / tp / (W_m * eta_h)


@term("elementwise.casts", source="transformer-engine-code", matrices="eight_bit")
def casts(n_p, T, h, a, d, f, f_e, f_s, k, w, w_8, W_m, eta_h, tp):
    """Inputs of matrices cast to eight bits, straight and transposed, with their largest value looked for."""
    return n_p * T * 2 * (w + w_8) * (2 * h + (a * d + f + k * (h + f_e) + f_s) / tp) / (W_m * eta_h)


@term("elementwise.loss", source="korthikanti-2022 §4")
def loss(n_p, T, V, w, w_32, W_m, eta_h, tp):
    """Logits written, read, normalised and differentiated."""
    return n_p * T * V / tp * (w + 2 * w_32) / (W_m * eta_h)


# --- launches --------------------------------------------------------------------------------------------------------


@term("launches.dense", source="pytorch-code kernel launch", ffn_kind="dense")
def launches_dense(n_p, tau_d):
    """Host time for a dense layer's kernels."""
    return n_p * tau_d


@term("launches.experts", source="pytorch-code kernel launch", ffn_kind="moe")
def launches_experts(n_p, tau_e):
    """Host time for an expert layer's kernels."""
    return n_p * tau_e


@term("launches.exposed", source="pytorch-code kernel launch")
def launches_exposed(t_h, t_g):
    """Where launching takes longer than computing, the GPU waits for its host."""
    return maximum(t_h - t_g, 0)


# --- pipeline and optimizer ------------------------------------------------------------------------------------------


@term("bubble", source="megatron-2021 §2.2", schedule=("1f1b", "gpipe", "interleaved"))
def bubble(t_b, m, pp, v):
    """A stage waits for the first micro-batch to arrive and the last to return."""
    return t_b / m * (pp - 1) / v


@term("bubble", source="zero-bubble-2024 §2", schedule="zb_h1")
def bubble_zb_h1(t_b, m, pp):
    """Weight gradients fill two thirds of the wait."""
    return t_b / m * (pp - 1) / 3


@term("bubble", source="zero-bubble-2024 §2", schedule=("zb_h2", "zb_v"))
def bubble_zb(t_b):
    """Weight gradients fill the wait."""
    return t_b * 0


@term("bubble", source="deepseek-v3-2024 §3.2.1", schedule="dualpipe")
def bubble_dualpipe(t_b, m, pp):
    """Micro-batches enter from both ends, and weight gradients fill a part of the wait."""
    return t_b / m * maximum(pp / 2 - 1, 0) * 2 / 3


@term("optimizer", source="zero-2020 §3.1")
def optimizer(N_o, w_m, w_g, w_c, phi, W_m, eta_h):
    """States read and written, gradients read, weights written."""
    return N_o * (2 * w_m + w_g + w_c) * phi / (W_m * eta_h)


TERMS = (
    matrices_attention, matrices_up, matrices_dense, matrices_experts, matrices_shared, matrices_head,
    matrices_adapters, scores,
    elementwise_gated, elementwise_plain, elementwise_gated_unfused, elementwise_plain_unfused, elementwise_experts,
    elementwise_scores, casts, loss,
    launches_dense, launches_experts, launches_exposed,
    bubble, bubble_zb_h1, bubble_zb, bubble_dualpipe, optimizer,
)  # fmt: skip
