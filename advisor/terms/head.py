"""Final norm and the head's input, on the stage that holds the head, and what predictors join."""

from advisor.formula import term


@term("head.norm", source="transformers-code LlamaRMSNorm", norm="rmsnorm", implementation="reference")
def final_rmsnorm(T, h, w_32, w_x, u_f, u_h, t_s):
    """The final norm's fp32 input, normalised tensor and reciprocal root."""
    return T * (h * (w_32 + w_x * u_f) + w_32) * u_h / t_s


@term("head.norm", source="transformers-code Gemma2RMSNorm", norm="gemma_rmsnorm", implementation="reference")
def final_rmsnorm_gemma(T, h, w_32, u_f, u_h, t_s):
    """The final norm, weighted in fp32: its input, normalised tensor and reciprocal root."""
    return T * (h * w_32 * (1 + u_f) + w_32) * u_h / t_s


@term("head.norm", source="pytorch-code native_layer_norm", norm="layernorm")
def final_layernorm(T, h, w_x, w_32, u_h, t_s):
    """The final norm's input, mean and reciprocal deviation."""
    return T * (h * w_x + 2 * w_32) * u_h / t_s


@term("head.norm", source="transformer-engine-code RMSNorm", norm=("rmsnorm", "gemma_rmsnorm"), implementation="fused")
def final_rmsnorm_fused(T, h, w, w_32, u_h, t_s):
    """The final norm's input and one fp32 scalar a token."""
    return T * (h * w + w_32) * u_h / t_s


@term("head.input", source="transformers-code LlamaForCausalLM")
def head_input(T, h, w, u_f, u_h, t_s):
    """What the head reads, kept where the head is trained."""
    return T * h * w * u_f * u_h / t_s


@term("predictors.joined", source="megatron-code MultiTokenPredictionLayer", implementation="fused")
def predictors_joined(T, h, w, t_s):
    """A multi-token predictor's two inputs before their norms, and joined before their matrix."""
    return 4 * T * h * w / t_s


TERMS = (
    final_rmsnorm,
    final_rmsnorm_gemma,
    final_layernorm,
    final_rmsnorm_fused,
    head_input,
    predictors_joined,
)
