"""Seconds that one rank exchanges with others in a step, and how much of it computing cannot hide.

``n_p`` counts passes over one layer, forward or backward; each exchanges alike.
"""

from advisor.formula import maximum, term

#: Schedules in which a stage works on one micro-batch at a time.
ONE_WAY = ("1f1b", "gpipe", "interleaved", "zb_h1", "zb_h2", "zb_v")

# --- tensor and sequence parallel ------------------------------------------------------------------------------------


@term("exchange.tensor", source="korthikanti-2022 §4.2.2", ffn_kind="dense")
def tensor_dense(n_p, T, h, w, tp, u_t, W_t, eta_w, tau_l, xi_t):
    """Gathered and reduced before and after attention and feed-forward; a part runs beside the matrices."""
    return n_p * xi_t * (4 * T * h * w * (tp - 1) / tp / (W_t * eta_w) + 4 * u_t * tau_l)


@term("exchange.tensor", source="korthikanti-2022 §4.2.2", ffn_kind="moe")
def tensor_experts(n_p, T, h, w, tp, etp, k, u_t, W_t, eta_w, tau_l, xi_t):
    """As in a dense layer around attention; experts exchange among themselves where they are divided."""
    return n_p * xi_t * (2 * T * h * w * ((tp - 1) / tp + k * (etp - 1) / tp) / (W_t * eta_w) + 2 * u_t * tau_l)


# --- experts ---------------------------------------------------------------------------------------------------------


@term("exchange.experts_sent", source="deepseek-v3-2024 §3.2.2")
def experts(n_p, T, h, k, i_e, w, tp, ep, n_o, u_k, W_f, W_o, eta_w, tau_l):
    """Dispatch and combine of the busiest rank: copies inside the fast domain; those that leave it, one a domain."""
    return n_p * (2 * T / tp * h * w * i_e * (k * (ep - 1) / ep / W_f + n_o / W_o) / eta_w + 2 * u_k * tau_l)


@term("exchange.experts", source="megablocks-2022 §5", schedule=ONE_WAY)
def experts_wait(t_x, xi_e):
    """A part runs beside other work."""
    return xi_e * t_x


@term("exchange.experts", source="deepseek-v3-2024 §3.2.1", schedule="dualpipe")
def experts_wait_dualpipe(t_x, t_g):
    """Another micro-batch computes meanwhile."""
    return maximum(t_x - t_g, 0)


# --- context ---------------------------------------------------------------------------------------------------------


@term("exchange.context_sent", source="ring-attention-2023 §3", context=("ring", "all_gather"), attention="gqa")
def context_keys(n_p, T, g, d, d_v, w, tp, cp, W_c, eta_w):
    """Keys and values pass every rank; on the way back their gradients come along."""
    return n_p * T * (cp - 1) * g * (d + d_v) * w / tp / (W_c * eta_w)


@term("exchange.context_sent", source="ring-attention-2023 §3", context=("ring", "all_gather"), attention="mla")
def context_keys_mla(n_p, T, a, d, d_v, w, tp, cp, W_c, eta_w):
    """Keys and values of every head, after the up-projection."""
    return n_p * T * (cp - 1) * a * (d + d_v) * w / tp / (W_c * eta_w)


@term("exchange.context_sent", source="ulysses-2023 §3", context="ulysses")
def context_heads(n_p, T, a, g, d, d_v, w, tp, cp, W_c, eta_w):
    """Query, key, value and output change from parts of the sequence to parts of the heads."""
    return n_p * T * (a + g) * (d + d_v) * w / tp * (cp - 1) / cp / (W_c * eta_w)


@term("exchange.context", source="ring-attention-2023 §3", context="ring")
def context_ring_waits(t_x, t_w, xi_d):
    """A ring hides behind the attention it feeds; a share is always waited for."""
    return maximum(t_x - t_w, xi_d * t_x)


@term("exchange.context", source="llama3-2024 §3.3.2", context=("all_gather", "ulysses"))
def context_waits(t_x):
    """What must be there before attention starts cannot hide behind it."""
    return t_x


# --- pipeline --------------------------------------------------------------------------------------------------------


@term("exchange.pipeline", source="megatron-2021 §2.2")
def pipeline(n_p, T, h, w, t_s, v, pp, W_p, eta_w):
    """A micro-batch's hidden states to the next piece, and their gradients back."""
    return n_p * T * h * w / t_s * v * (pp - 1) / pp / (W_p * eta_w)


# --- data parallel ---------------------------------------------------------------------------------------------------


@term("exchange.gather_sent", source="zero-2020 §7")
def gather(n_p, P_t, P_r, P_e, tp, ep, etp, n_g, n_c, w_n, z_w, y_w, W_d, W_x, eta_w, tau_r):
    """Weights gathered for each pass of a micro-batch, unit by unit, each from rank to rank."""
    return (
        n_p
        * n_g
        * (
            w_n * ((P_t / tp + P_r) * (z_w - 1) / z_w / W_d + P_e / (ep * etp) * (y_w - 1) / y_w / W_x) / eta_w
            + n_c * (z_w - 1) * tau_r
        )
    )


@term("exchange.scatter_sent", source="zero-2020 §7")
def scatter(n_p, G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, n_c, w_d, z_w, y_w, W_d, W_x, eta_w, tau_r):
    """Gradients reduced to the rank that holds them, unit by unit, each from rank to rank."""
    return n_p * (
        w_d * ((G_t + G_h) / tp + G_b + G_r + P_a) * (z_w - 1) / z_w / (W_d * eta_w)
        + w_d * G_e / (ep * etp) * (y_w - 1) / y_w / (W_x * eta_w)
        + n_c * (z_w - 1) * tau_r
    )


@term("exchange.reduce_sent", source="zero-2020 §7")
def reduce(n_p, G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, n_d, n_x, w_d, w_c, W_d, W_x, eta_w):
    """Gradients reduced and weights gathered once a step; an all-reduce costs the same."""
    return n_p * (
        (w_d + w_c) * ((G_t + G_h) / tp + G_b + G_r + P_a) * (n_d - 1) / n_d / (W_d * eta_w)
        + (w_d + w_c) * G_e / (ep * etp) * (n_x - 1) / n_x / (W_x * eta_w)
    )


@term("exchange.replicas", source="pytorch-fsdp-2023 §3.2.2")
def replicas(n_p, G_t, G_r, G_h, G_b, G_e, tp, ep, etp, z_g, y_g, n_r, w_d, W_r, eta_w):
    """Replicas of a sharded group average their shards once a step."""
    return (
        n_p
        * 2
        * w_d
        * (((G_t + G_h) / tp + G_b + G_r) / z_g + G_e / (ep * etp) / y_g)
        * (n_r - 1)
        / n_r
        / (W_r * eta_w)
    )


@term("exchange.gather", source="pytorch-fsdp-2023 §3.3")
def gather_waits(t_x, t_g, u_w, xi_d):
    """Gathering runs ahead of computing, unless a unit is too large for that; a share is always waited for."""
    return maximum(t_x - (1 - u_w) * t_g, xi_d * t_x)


@term("exchange.reduce", source="korthikanti-2022 §4")
def reduce_waits(t_x, t_g, m, xi_d):
    """One micro-batch's computing can hide the exchange of a step."""
    return maximum(t_x - t_g / m, xi_d * t_x)


# --- off the GPU -----------------------------------------------------------------------------------------------------


@term("offload.optimizer", source="zero-offload-2021 §4.1")
def offload_optimizer(n_p, N_o, w_g, w_c, w_m, phi, W_h, W_q):
    """Gradients to the host, the optimizer there, weights back; once a step."""
    return n_p * N_o * (1 - phi) * ((w_g + w_c) / W_h + (2 * w_m + w_g) / W_q)


@term("offload.nvme", source="zero-infinity-2021 §5")
def offload_nvme(n_p, N_o, w_m, phi, W_v):
    """States read from NVMe and written back; once a step."""
    return n_p * N_o * (1 - phi) * 2 * w_m / W_v


@term("offload.parameters", source="zero-infinity-2021 §5")
def offload_parameters(n_p, P_t, P_r, P_e, tp, ep, etp, z_w, y_w, n_g, w_n, w_g, W_h):
    """A rank's share of the weights fetched for each pass of a micro-batch, its gradients sent back."""
    return n_p * ((P_t / tp + P_r) / z_w + P_e / (ep * etp) / y_w) * (n_g * w_n + w_g) / W_h


@term("offload.activations_sent", source="zero-infinity-2021 §5")
def offload_activations(n_p, B_l, W_h):
    """What a layer keeps for its backward pass goes to the host and comes back."""
    return 2 * n_p * B_l / W_h


@term("offload.activations", source="zero-infinity-2021 §5")
def offload_activations_wait(t_x, t_g):
    """Hidden behind computing while the link keeps up."""
    return maximum(t_x - t_g, 0)


TERMS = (
    tensor_dense, tensor_experts, experts, experts_wait, experts_wait_dualpipe,
    context_keys, context_keys_mla, context_heads, context_ring_waits, context_waits,
    pipeline, gather, scatter, reduce, replicas, gather_waits, reduce_waits,
    offload_optimizer, offload_nvme, offload_parameters, offload_activations, offload_activations_wait,
)  # fmt: skip
