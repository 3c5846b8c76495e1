"""What there is to do: FLOP of one token's forward pass in each part of a layer, elements that the optimizer steps."""

from advisor.formula import term


@term("work.attention", source="megatron-2021 appendix", attention="gqa")
def attention_matrices(h, a, g, d, d_v):
    """Projections of query, key, value and output."""
    return 2 * h * (a * d + g * d + g * d_v + a * d_v)


@term("work.attention", source="deepseek-v3-2024 §2.1.1", attention="mla", queries="compressed")
def attention_matrices_mla(h, a, d, d_v, d_r, q_r, c_kv):
    """Down- and up-projections of query and key/value, output."""
    return 2 * (h * (q_r + c_kv + d_r) + q_r * a * d + c_kv * a * (d - d_r + d_v) + a * d_v * h)


@term("work.attention", source="deepseek-v3-2024 §2.1.1", attention="mla", queries="direct")
def attention_matrices_mla_direct(h, a, d, d_v, d_r, c_kv):
    """As with compressed queries, which a small model does without."""
    return 2 * (h * (a * d + c_kv + d_r) + c_kv * a * (d - d_r + d_v) + a * d_v * h)


@term("work.up_projections", source="deepseek-v3-2024 §2.1.1", attention="mla")
def up_projections(a, d, d_v, d_r, q_r, c_kv):
    """The part of attention's matrices that cheap recompute makes again."""
    return 2 * (q_r * a * d + c_kv * a * (d - d_r + d_v))


@term("work.scores", source="korthikanti-2022 appendix A", scores="eager")
def attention_scores_eager(a, d, d_v, s):
    """Scores against the whole sequence, masked afterwards."""
    return 2 * a * (d + d_v) * s


@term("work.scores", source="flash-attention-2-2023 §3", scores="flash")
def attention_scores(a, d, d_v, n_k):
    """Scores against the keys that the mask leaves, and their product with the values."""
    return 2 * a * (d + d_v) * n_k


@term("work.dense", source="megatron-2021 appendix", ffn="gated")
def feed_forward_gated(h, f):
    """Gate, up and down."""
    return 6 * h * f


@term("work.dense", source="megatron-2021 appendix", ffn="plain")
def feed_forward_plain(h, f):
    """Up and down."""
    return 4 * h * f


@term("work.expert", source="megablocks-2022 §5", expert="gated")
def expert_gated(h, f_e):
    """Gate, up and down of one routed expert."""
    return 6 * h * f_e


@term("work.expert", source="megablocks-2022 §5", expert="plain")
def expert_plain(h, f_e):
    """Up and down of one routed expert."""
    return 4 * h * f_e


@term("work.shared", source="deepseek-v3-2024 §2.1.2")
def router_and_shared(h, E, f_s):
    """The router's scores, and gate, up and down of the shared experts."""
    return 2 * h * E + 6 * h * f_s


@term("work.head", source="megatron-2021 appendix")
def head(h, V):
    """Logits."""
    return 2 * h * V


@term("work.adapters", source="lora-2021 §4")
def adapters(P_a):
    """Down and up again, in all layers of the stage."""
    return 2 * P_a


@term("work.stepped", source="zero-2020 §5")
def stepped(G_t, G_r, G_h, G_b, G_e, P_a, tp, ep, etp, z_o, y_o):
    """Trained elements whose states one rank holds."""
    return ((G_t + G_h) / tp + G_b + G_r + P_a) / z_o + G_e / (ep * etp) / y_o


TERMS = (
    attention_matrices,
    attention_matrices_mla,
    attention_matrices_mla_direct,
    up_projections,
    attention_scores,
    attention_scores_eager,
    feed_forward_gated,
    feed_forward_plain,
    expert_gated,
    expert_plain,
    router_and_shared,
    head,
    adapters,
    stepped,
)
