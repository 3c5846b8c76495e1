"""What the norms of one layer keep, and the layer input that a checkpoint keeps."""

from advisor.formula import term


@term("norms.kept", source="transformers-code LlamaRMSNorm", norm="rmsnorm", implementation="reference")
def rmsnorm_reference(T, h, w_32, w_x, n_n, n_i, u_n, t_s):
    """The fp32 copy of the input, the normalised tensor (for the weight's gradient) and the reciprocal root."""
    return T * (h * (n_i * w_32 + n_n * w_x * u_n) + n_n * w_32) / t_s


@term("norms.kept", source="transformers-code Gemma2RMSNorm", norm="gemma_rmsnorm", implementation="reference")
def rmsnorm_gemma(T, h, w_32, n_n, n_i, u_n, t_s):
    """Weighted in fp32: the fp32 input, the fp32 normalised tensor and the reciprocal root."""
    return T * (h * w_32 * (n_i + n_n * u_n) + n_n * w_32) / t_s


@term("norms.kept", source="pytorch-code native_layer_norm", norm="layernorm", implementation="reference")
def layernorm_reference(T, h, w_x, w_32, n_n, t_s):
    """The input, its mean and its reciprocal deviation."""
    return n_n * T * (h * w_x + 2 * w_32) / t_s


@term("norms.kept", source="transformer-engine-code RMSNorm", norm=("rmsnorm", "gemma_rmsnorm"), implementation="fused")
def rmsnorm_fused(T, h, w, w_32, n_n, t_s):
    """A fused kernel keeps the input in its own dtype and one fp32 scalar a token."""
    return n_n * T * (h * w + w_32) / t_s


@term("norms.kept", source="transformer-engine-code LayerNorm", norm="layernorm", implementation="fused")
def layernorm_fused(T, h, w, w_32, n_n, t_s):
    """A fused kernel keeps the input in its own dtype and two fp32 scalars a token."""
    return n_n * T * (h * w + 2 * w_32) / t_s


@term("residual.masks", source="pytorch-code native_dropout", residual_dropout="on")
def residual_masks(T, h, w_8, t_s):
    """Masks of the dropout after attention and after the feed-forward."""
    return 2 * T * h * w_8 / t_s


@term("checkpoint.input", source="chen-2016 §4")
def checkpoint_input(T, h, w_x, t_c):
    """A recomputed layer keeps its input only."""
    return T * h * w_x / t_c


@term("checkpoint.selected", source="torchtitan-code _apply_op_sac", selective="operators")
def checkpoint_selected(T, h, a, g, d, d_v, f, w, w_32, t_s, tp):
    """Per-operator selective recompute: every second matrix product (q, v, gate, down) and attention are kept."""
    return T * ((a * d + g * d_v + f) * w / tp + h * w / t_s + a * (d_v * w + w_32) / tp)


TERMS = (
    rmsnorm_reference,
    rmsnorm_gemma,
    layernorm_reference,
    rmsnorm_fused,
    layernorm_fused,
    residual_masks,
    checkpoint_input,
    checkpoint_selected,
)
