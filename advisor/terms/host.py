"""What leaves the GPU: bytes one rank keeps in host memory or on NVMe."""

from advisor.formula import term


@term("host.optimizer", source="deepspeed-code stage3.initialize_optimizer_states")
def host_optimizer(G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, w_m, w_o, g_o, z_o, y_o, phi):
    """Master copies, states and the gradients that the offloaded share steps on."""
    return (
        (((G_t / tp + P_a) * (w_m + g_o) + (G_r + G_h / tp + G_b) * (w_o + g_o)) / z_o + G_e / (ep * etp) * (w_m + g_o) / y_o)
        * (1 - phi)
    )  # fmt: skip


@term("host.parameters", source="zero-infinity-2021 §5")
def host_parameters(P_t, P_r, P_e, tp, ep, etp, w_w, z_w, y_w):
    """Weights that are fetched when they are needed."""
    return (P_t / tp + P_r) * w_w / z_w + P_e / (ep * etp) * w_w / y_w


TERMS = (host_optimizer, host_parameters)
