"""Logits and loss, kernel by kernel: what is kept, and what exists beside it forward and backward."""

from advisor.formula import term

EAGER_LOGITS = ("upcast", "upcast_shifted", "upcast_in_model", "own_dtype")


@term("loss.kept", source="transformers-code 4.48 GPT2LMHeadModel", loss="standard", logits="own_dtype")
def loss_kept_own(T, V, w, t_v, u_h):
    """The log-softmax in the logits' own dtype."""
    return T * V * w / t_v * u_h


@term("loss.forward", source="transformers-code 4.48 GPT2LMHeadModel", loss="standard", logits="own_dtype")
def loss_forward_own(T, V, w, t_v, u_h):
    """Logits and their shifted copy, alive beside the log-softmax."""
    return 2 * T * V * w / t_v * u_h


@term("loss.backward", source="transformers-code 4.48 GPT2LMHeadModel", loss="standard", logits="own_dtype")
def loss_backward_own(T, V, w, t_v, u_h):
    """The gradients of log-softmax and of the negative log-likelihood, alive beside the log-softmax."""
    return 2 * T * V * w / t_v * u_h


@term(
    "loss.kept",
    source="transformers-code ForCausalLMLoss",
    loss="standard",
    logits=("upcast", "upcast_shifted", "upcast_in_model", "vocab_parallel"),
)
def loss_kept_standard(T, V, w_32, t_v, u_h):
    """The fp32 log-softmax, from the forward pass to the loss' backward pass."""
    return T * V * w_32 / t_v * u_h


@term("loss.forward", source="transformers-code ForCausalLMLoss", loss="standard", logits="upcast")
def loss_forward_standard(T, V, w, w_32, t_v, u_v, u_h):
    """Logits and their fp32 copy, alive beside the log-softmax."""
    return T * V * (w + w_32 * u_v) / t_v * u_h


@term("loss.forward", source="transformers-code 4.48 ForCausalLMLoss", loss="standard", logits="upcast_shifted")
def loss_forward_shifted(T, V, w, w_32, t_v, u_v, u_h):
    """Logits, their fp32 copy and its shifted copy, alive beside the log-softmax."""
    return T * V * (w + w_32 * u_v + w_32) / t_v * u_h


@term("loss.forward", source="transformers-code 4.45 LlamaForCausalLM", loss="standard", logits="upcast_in_model")
def loss_forward_in_model(T, V, w_32, t_v, u_h):
    """The model's fp32 logits and their shifted copy, alive beside the log-softmax."""
    return 2 * T * V * w_32 / t_v * u_h


@term("loss.forward", source="megatron-code vocab_parallel_cross_entropy", loss="standard", logits="vocab_parallel")
def loss_forward_parallel(T, V, w, t_v, u_h):
    """Logits in their own dtype, alive beside the fp32 softmax."""
    return T * V * w / t_v * u_h


@term(
    "loss.backward",
    source="transformers-code ForCausalLMLoss",
    loss="standard",
    logits=("upcast", "upcast_shifted", "upcast_in_model"),
)
def loss_backward_standard(T, V, w_32, t_v, u_h):
    """The gradients of log-softmax and of the negative log-likelihood, alive beside the log-softmax."""
    return 2 * T * V * w_32 / t_v * u_h


@term("loss.backward", source="megatron-code vocab_parallel_cross_entropy", loss="standard", logits="vocab_parallel")
def loss_backward_parallel(T, V, w, t_v, u_h):
    """The logits' gradient in their own dtype; the softmax is overwritten in place."""
    return T * V * w / t_v * u_h


@term("loss.kept", source="torchtitan-code build_cross_entropy_loss", loss="standard", logits="compiled")
def loss_kept_compiled(T, V, w, t_v, u_h):
    """The compiled loss keeps the logits in their own dtype and two scalars a token."""
    return T * V * w / t_v * u_h


@term("loss.backward", source="torchtitan-code build_cross_entropy_loss", loss="standard", logits="compiled")
def loss_backward_compiled(T, V, w, t_v, u_h):
    """The logits' gradient in their own dtype."""
    return T * V * w / t_v * u_h


@term(
    "loss.kept",
    source="flash-attention-code CrossEntropyLoss",
    loss="fused_logits",
    logits=("own_dtype", "compiled"),
)
def loss_kept_fused_own(T, V, w, t_v, u_h):
    """Logits in their own dtype; the kernel keeps one scalar a token beside them."""
    return T * V * w / t_v * u_h


@term(
    "loss.backward",
    source="flash-attention-code CrossEntropyLoss",
    loss="fused_logits",
    logits=("own_dtype", "compiled"),
)
def loss_backward_fused_own(T, V, w, t_v, u_h):
    """The logits' gradient in their own dtype."""
    return T * V * w / t_v * u_h


@term(
    "loss.kept",
    source="unsloth-code fast_cross_entropy_loss",
    loss="fused_logits",
    logits=("upcast", "upcast_shifted", "upcast_in_model", "vocab_parallel"),
)
def loss_kept_fused_logits(T, V, w_32, t_v, u_h):
    """The fp32 logits, over which the kernel later writes their gradient."""
    return T * V * w_32 / t_v * u_h


@term(
    "loss.forward",
    source="unsloth-code fast_cross_entropy_loss",
    loss="fused_logits",
    logits=("upcast", "own_dtype", "compiled"),
)
def loss_forward_fused_logits(T, V, w, t_v, u_h):
    """Logits in their own dtype."""
    return T * V * w / t_v * u_h


@term("loss.forward", source="unsloth-code fast_cross_entropy_loss", loss="fused_logits", logits="upcast_shifted")
def loss_forward_fused_shifted(T, V, w, w_32, t_v, u_h):
    """Logits in their own dtype, and their fp32 copy before the shift."""
    return T * V * (w + w_32) / t_v * u_h


@term("loss.forward", source="unsloth-code fast_cross_entropy_loss", loss="fused_logits", logits="upcast_in_model")
def loss_forward_fused_in_model(T, V, w_32, t_v, u_h):
    """The model's fp32 logits beside the shifted ones."""
    return T * V * w_32 / t_v * u_h


@term(
    "loss.backward",
    source="unsloth-code fast_cross_entropy_loss",
    loss="fused_logits",
    logits=("upcast", "upcast_shifted", "upcast_in_model"),
)
def loss_backward_fused_logits(T, V, w_32, t_v, u_h):
    """The shift's backward pass copies the gradient into a tensor of all positions."""
    return T * V * w_32 / t_v * u_h


@term("loss.softcap", source="transformers-code Gemma2ForCausalLM")
def loss_softcap(T, V, w, u_s, t_v, u_h):
    """The tanh of soft-capped logits."""
    return T * V * w * u_s / t_v * u_h


@term("loss.held_logits", source="transformers-code CausalLMOutput")
def loss_held_logits(T, V, w_y, t_v, u_l, u_h):
    """Logits that the caller holds through the backward pass."""
    return T * V * w_y * u_l / t_v * u_h


@term(
    "loss.forward",
    source="liger-code fused_linear_cross_entropy",
    loss="fused",
    logits=("upcast", "upcast_shifted", "upcast_in_model", "own_dtype", "compiled"),
)
def loss_forward_fused(n_t, V, w, w_32, T, h, t_v, u_h):
    """One chunk's logits with their fp32 copy; the gradient of the hidden states is made at once."""
    return (n_t * V * (w + w_32) / t_v + T * h * w) * u_h


@term("loss.kept", source="liger-code fused_linear_cross_entropy", loss="fused")
def loss_kept_fused(T, V, h, w, t_v, u_f, u_h):
    """Gradients of hidden states and of a head that is trained, made in the forward pass and kept."""
    return (T * h + V * h * u_f / t_v) * w * u_h


@term(
    "loss.backward",
    source="liger-code fused_linear_cross_entropy",
    loss="fused",
    logits=("upcast", "upcast_shifted", "upcast_in_model", "own_dtype", "compiled"),
)
def loss_backward_fused(T, h, w, u_h):
    """The hidden states' gradient scaled by the incoming one."""
    return T * h * w * u_h


@term("loss.kept", source="torchtune-code CEWithChunkedOutputLoss", loss="chunked", logits="compiled")
def loss_kept_chunked_compiled(T, V, w, t_v, u_h):
    """Logits in their own dtype: a compiled chunk casts them again when it is differentiated."""
    return T * V * w / t_v * u_h


@term(
    "loss.kept",
    source="torchtune-code CEWithChunkedOutputLoss",
    loss="chunked",
    logits=(*EAGER_LOGITS, "vocab_parallel"),
)
def loss_kept_chunked(T, V, w_32, t_v, u_h):
    """Each chunk's fp32 log-softmax."""
    return T * V * w_32 / t_v * u_h


@term("loss.forward", source="torchtune-code CEWithChunkedOutputLoss", loss="chunked", logits="compiled")
def loss_forward_chunked_compiled(T, w_32, u_h):
    """A sum of exponentials a token: the cast is fused into the reduction."""
    return T * w_32 * u_h


@term("loss.forward", source="torchtune-code CEWithChunkedOutputLoss", loss="chunked", logits=EAGER_LOGITS)
def loss_forward_chunked(T, V, w, n_t, w_32, t_v, u_h):
    """All chunks' logits in their own dtype, until the caller lets them go, and one chunk's fp32 copy."""
    return (T * V * w + n_t * V * w_32) / t_v * u_h


@term("loss.backward", source="torchtune-code CEWithChunkedOutputLoss", loss="chunked", logits="compiled")
def loss_backward_chunked_compiled(n_t, V, w, t_v, u_h):
    """One chunk's gradient: those before it stand where their logits were."""
    return n_t * V * w / t_v * u_h


@term("loss.backward", source="torchtune-code CEWithChunkedOutputLoss", loss="chunked", logits=EAGER_LOGITS)
def loss_backward_chunked(n_t, V, w, w_32, t_v, u_h):
    """One chunk's fp32 gradient and its cast: those before it stand where their softmax was."""
    return n_t * V * (w_32 + w) / t_v * u_h


TERMS = (
    loss_kept_own,
    loss_forward_own,
    loss_backward_own,
    loss_kept_compiled,
    loss_backward_compiled,
    loss_kept_standard,
    loss_forward_standard,
    loss_forward_shifted,
    loss_forward_in_model,
    loss_forward_parallel,
    loss_backward_standard,
    loss_backward_parallel,
    loss_kept_fused_own,
    loss_backward_fused_own,
    loss_kept_fused_logits,
    loss_forward_fused_logits,
    loss_forward_fused_shifted,
    loss_forward_fused_in_model,
    loss_backward_fused_logits,
    loss_softcap,
    loss_held_logits,
    loss_forward_fused,
    loss_kept_fused,
    loss_backward_fused,
    loss_kept_chunked_compiled,
    loss_kept_chunked,
    loss_forward_chunked_compiled,
    loss_forward_chunked,
    loss_backward_chunked_compiled,
    loss_backward_chunked,
)
