"""What the attention of one layer keeps for its backward pass, tensor by tensor."""

from advisor.formula import term

FLASH = ("flash", "sdpa")


@term("attention.input", source="transformers-code LlamaAttention")
def attention_input(T, h, w_u, c_q, u_q, t_a):
    """The normed hidden states that q, k and v read: one tensor, or one cast each under autocast."""
    return T * h * w_u * c_q * u_q / t_a


# --- q, k, v ---------------------------------------------------------------------------------------------------------


@term("attention.qkv", source="flash-attention-2-2023 §3", attention="gqa", kv="grouped", qkv="separate")
def qkv_flash(T, a, g_k, d, d_v, w, tp):
    """Rotated q and k, and v; key/value heads are not expanded."""
    return T * (a * d + g_k * d + g_k * d_v) * w / tp


@term("attention.qkv", source="flash-attention-2-2023 §3", attention="gqa", kv="grouped", qkv="fused_rotated")
def qkv_flash_fused(T, a, g, d, w, tp):
    """V is a view, so the whole fused output stays alive beside rotated q and k."""
    return T * (2 * a * d + 3 * g * d) * w / tp


@term("attention.qkv", source="flash-attention-2-2023 §3", attention="gqa", kv="grouped", qkv="fused")
def qkv_flash_views(T, a, g, d, w, tp):
    """Without rotation q, k and v are views of one output."""
    return T * (a * d + 2 * g * d) * w / tp


@term(
    "attention.qkv",
    source="pytorch-code sdpa math and efficient",
    attention="gqa",
    kv="expanded",
    qkv="separate",
)
def qkv_expanded(T, a, d, d_v, w, tp):
    """Key and value heads are expanded to the query heads."""
    return T * (2 * a * d + a * d_v) * w / tp


@term(
    "attention.qkv",
    source="pytorch-code sdpa math and efficient",
    attention="gqa",
    kv="expanded",
    qkv="fused_rotated",
    heads="grouped",
)
def qkv_expanded_fused(T, a, d, w, tp):
    """Rotated q and k, and v, each at the query heads' width."""
    return T * 3 * a * d * w / tp


@term(
    "attention.qkv",
    source="pytorch-code sdpa math and efficient",
    attention="gqa",
    kv="expanded",
    qkv="fused",
)
def qkv_expanded_views(T, a, g, d, w, tp):
    """Without rotation q, k and v are views of one output."""
    return T * (a * d + 2 * g * d) * w / tp


@term(
    "attention.qkv",
    source="pytorch-code sdpa math and efficient",
    attention="gqa",
    kv="expanded",
    qkv="fused_rotated",
    heads="equal",
)
def qkv_unexpanded_fused(T, a, g, d, w, tp):
    """With as many key heads as query heads nothing is expanded, and v stays a view of the fused output."""
    return T * (2 * a * d + 3 * g * d) * w / tp


@term(
    "attention.qkv",
    source="deepseek-v3-2024 §2.1.1",
    attention="mla",
    implementation="reference",
    kernel=("sdpa", "sdpa_masked", "eager"),
)
def qkv_mla(T, a, d, w, tp):
    """Both q and k at their full width, after the up-projections and rotation; v is a view of the up-projection."""
    return 2 * T * a * d * w / tp


@term("attention.qkv", source="deepseek-v3-2024 §2.1.1", attention="mla", implementation="reference", kernel="flash")
def qkv_mla_padded(T, a, d, w, tp):
    """Flash attention needs one width: v is padded to that of q and k."""
    return 3 * T * a * d * w / tp


@term("attention.qkv", source="megatron-code MLASelfAttention", attention="mla", implementation="fused")
def qkv_mla_fused(T, a, d, d_v, w, tp):
    """The tensors q, k and v, each contiguous at its own width."""
    return T * a * (2 * d + d_v) * w / tp


@term(
    "attention.qk_norm",
    source="transformers-code Gemma3RMSNorm",
    qk_norm="per_head",
    norm="gemma_rmsnorm",
    implementation="reference",
)
def qk_norm_gemma(T, a, g, d, w_32, u_n, tp):
    """The norms of q and k, weighted in fp32."""
    return T * (a + g) * (d * w_32 * (1 + u_n) + w_32) / tp


@term(
    "attention.qk_norm",
    source="transformers-code Qwen3RMSNorm",
    qk_norm="per_head",
    norm=("rmsnorm", "layernorm"),
    implementation="reference",
)
def qk_norm_reference(T, a, g, d, w, w_32, u_n, tp):
    """The norms of q and k: fp32 input, normalised tensor, reciprocal root per head."""
    return T * (a + g) * (d * (w_32 + w * u_n) + w_32) / tp


@term("attention.qk_norm", source="transformer-engine-code RMSNorm", qk_norm="per_head", implementation="fused")
def qk_norm_fused(T, a, g, d, w, w_32, tp):
    """The norms of q and k: their inputs and one fp32 scalar a head."""
    return T * (a + g) * (d * w + w_32) / tp


@term("attention.qk_norm", source="transformers-code Olmo2RMSNorm", qk_norm="full")
def qk_norm_full(T, a, g, d, w, w_32, u_n, tp):
    """One norm over all of q, one over all of k."""
    return T * ((a + g) * d * (w_32 + w * u_n) + 2 * w_32) / tp


@term("attention.mla_latents", source="deepseek-v3-2024 §2.1.1", attention="mla", implementation="reference")
def mla_latents_reference(T, q_r, c_kv, w, w_32, u_n, u_q, t_s):
    """Compressed q and kv: fp32 norm input, normalised tensor, and the up-projections' inputs."""
    return T * (q_r + c_kv) * (w_32 + w * u_n + w * u_q) / t_s


@term("attention.mla_latents", source="deepseek-v3-2024 §2.1.1", attention="mla", implementation="fused")
def mla_latents_fused(T, q_r, c_kv, d_r, w, t_s):
    """Compressed q and kv before and after their norms, and the shared rotary key."""
    return T * (2 * q_r + 2 * c_kv + d_r) * w / t_s


@term(
    "attention.mla_up",
    source="deepseek-v3-2024 §2.1.1",
    attention="mla",
    implementation="reference",
    kernel=("sdpa", "sdpa_masked", "eager"),
)
def mla_up(T, a, d, d_r, d_v, w, tp):
    """The key/value up-projection's output, kept whole because v is a view of it."""
    return T * a * (d - d_r + d_v) * w / tp


# --- the core --------------------------------------------------------------------------------------------------------


@term("attention.core", source="flash-attention-2-2023 §3.1", kernel=FLASH)
def core_flash(T, a, w_32, tp):
    """The log-sum-exp of each query."""
    return T * a * w_32 / tp


@term("attention.core", source="pytorch-code sdpa efficient", kernel="sdpa_masked")
def core_masked(T, b, s, cp, a, w, w_32, tp):
    """The log-sum-exp, and a copy of the mask that every layer keeps; heads share it."""
    return T * a * w_32 / tp + b * s * s / cp * w


@term("attention.core", source="korthikanti-2022 eq. 2", kernel="eager", implementation="fused")
def core_unfused(T, s, a, w, w_8, u_a, tp):
    """The probabilities in their own dtype: one kernel scales, masks and normalises; a dropout's mask and output."""
    return T * a * s * (w + (w_8 + w) * u_a) / tp


@term("attention.core", source="transformers-code eager_attention_forward", kernel="eager", implementation="reference")
def core_eager(T, s, a, w, w_32, w_8, u_32, u_c, u_a, tp):
    """The probabilities: fp32 softmax and its copy, a soft-cap's tanh, a dropout's mask and output."""
    return T * a * s * (w + w_32 * u_32 + w * u_c + (w_8 + w) * u_a) / tp


@term(
    "attention.output",
    source="flash-attention-2-2023 §3.1",
    attention="mla",
    implementation="reference",
    kernel="flash",
)
def output_mla_padded(T, a, d, d_v, w, u_o, tp):
    """The padded output that the kernel keeps, and its cut that the output projection reads."""
    return T * a * (d + d_v * u_o) * w / tp


@term("attention.output", source="flash-attention-2-2023 §3.1", kernel=("sdpa", "sdpa_masked"))
def output_sdpa(T, a, d_v, w, tp):
    """The attention output: the kernel keeps it, and it is the output projection's input."""
    return T * a * d_v * w / tp


@term("attention.output", source="flash-attention-2-2023 §3.1", attention="mla", implementation="fused", kernel="flash")
def output_mla(T, a, d_v, w_h, tp):
    """The attention output: the kernel keeps it, and it is the output projection's input."""
    return T * a * d_v * w_h / tp


@term("attention.output", source="flash-attention-2-2023 §3.1", attention="gqa", kernel="flash")
def output_flash(T, a, d_v, w_h, tp):
    """The attention output: the kernel keeps it, and it is the output projection's input."""
    return T * a * d_v * w_h / tp


@term("attention.output", source="transformers-code eager_attention_forward", kernel="eager")
def output_eager(T, a, d_v, w, u_o, tp):
    """The output projection's input."""
    return T * a * d_v * w * u_o / tp


@term("attention.output_copy", source="transformers-code Phi3Attention", kernel=FLASH)
def output_copy(T, a, d_v, w_u, u_x, u_o, tp):
    """The output copied for its projection: into rows where q was rebuilt by concatenation, into fp8."""
    return T * a * d_v * w_u * u_x * u_o / tp


@term("attention.adapters", source="peft-code Linear", adapters="on")
def attention_adapters(T, h, a, d_v, w_l, w_8, u_b, r, n_l, m_q, m_o, t_a, tp):
    """Adapter inputs of their own (another dtype, or after dropout with its mask) and the rank-r outputs of A."""
    return T * ((w_l + w_8 * u_b) * (m_q * h / t_a + m_o * a * d_v / tp) + w_l * n_l * r)


TERMS = (
    attention_input,
    qkv_flash,
    qkv_flash_fused,
    qkv_flash_views,
    qkv_expanded,
    qkv_expanded_fused,
    qkv_expanded_views,
    qkv_unexpanded_fused,
    qkv_mla,
    qkv_mla_padded,
    qkv_mla_fused,
    qk_norm_gemma,
    qk_norm_reference,
    qk_norm_fused,
    qk_norm_full,
    mla_latents_reference,
    mla_latents_fused,
    mla_up,
    core_flash,
    core_masked,
    core_unfused,
    core_eager,
    output_mla_padded,
    output_sdpa,
    output_mla,
    output_flash,
    output_eager,
    output_copy,
    attention_adapters,
)
