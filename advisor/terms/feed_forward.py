"""What the feed-forward of one layer keeps for its backward pass: dense, or routed and shared experts."""

from advisor.formula import term

# --- dense -----------------------------------------------------------------------------------------------------------


@term("ffn.input", source="transformers-code LlamaMLP", ffn_kind="dense")
def ffn_input(T, h, w_u, c_g, u_g, t_a):
    """The normed hidden states that gate and up read."""
    return T * h * w_u * c_g * u_g / t_a


@term("ffn.up", source="transformers-code LlamaMLP", ffn_kind="dense", ffn="gated")
def ffn_gate_up(T_f, f, w_z, tp):
    """Outputs of gate and up."""
    return 2 * T_f * f * w_z / tp


@term("ffn.up", source="korthikanti-2022 §4.1", ffn_kind="dense", ffn=("plain", "plain_unfused"))
def ffn_up(T_f, f, w, tp):
    """The activation function's input."""
    return T_f * f * w / tp


@term("ffn.activation", source="transformers-code LlamaMLP", ffn_kind="dense", ffn="gated", implementation="reference")
def ffn_activation_reference(T_f, f, w, u_d, tp):
    """The activated gate, and its product with up that the down projection reads."""
    return T_f * f * w * (1 + u_d) / tp


@term("ffn.activation", source="liger-code LigerSiLUMul", ffn_kind="dense", ffn="gated", implementation="fused")
def ffn_activation_fused(T_f, f, w_u, u_d, tp):
    """A fused kernel recomputes the activation; the product stays for the down projection."""
    return T_f * f * w_u * u_d / tp


@term("ffn.activation", source="korthikanti-2022 §4.1", ffn_kind="dense", ffn="plain")
def ffn_activation_plain(T_f, f, w_u, u_d, tp):
    """The activation function's output, which the second matrix reads."""
    return T_f * f * w_u * u_d / tp


@term("ffn.activation", source="transformers-code NewGELUActivation", ffn_kind="dense", ffn="plain_unfused")
def ffn_activation_unfused(T_f, f, w, u_d, tp):
    """GELU written out in tensor operations keeps three more tensors."""
    return T_f * f * w * (3 + u_d) / tp


@term("ffn.activation", source="pytorch-code relu", ffn_kind="dense", ffn="relu")
def ffn_activation_relu(T_f, f, w, tp):
    """ReLU keeps its output only, which the second matrix reads as well."""
    return T_f * f * w / tp


@term("ffn.adapters", source="peft-code Linear", ffn_kind="dense", adapters="on")
def ffn_adapters(T, h, f, w_l, w_8, u_b, m_g, m_d, t_a, tp):
    """Adapter inputs of their own."""
    return T * (w_l + w_8 * u_b) * (m_g * h / t_a + m_d * f / tp)


# --- mixture of experts ----------------------------------------------------------------------------------------------


@term("moe.input", source="transformers-code Qwen3MoeSparseMoeBlock", ffn_kind="moe")
def moe_input(T, h, w, u_m, t_s):
    """The normed hidden states that router and shared experts read."""
    return T * h * w * u_m / t_s


@term("moe.router", source="transformers-code Qwen3MoeSparseMoeBlock", ffn_kind="moe")
def moe_router(T, E, h, k, w_32, w_i, u_y, t_s):
    """Router probabilities in fp32, the chosen experts and their order, an fp32 copy of the input where made."""
    return T * (E * w_32 + h * w_32 * u_y + 5 * k * w_i) / t_s


@term("moe.dispatched", source="megatron-code MoE token dispatcher", ffn_kind="moe", experts=("routed", "clamped"))
def moe_dispatched(T, k, h, w_r, i_e, u_e, etp, t_s):
    """One copy of the hidden states for each expert a token visits; the ranks that cut an expert gather theirs."""
    return T * k * i_e * etp * h * w_r * u_e / t_s


@term("moe.dispatched", source="transformers-code Llama4TextMoe", ffn_kind="moe", experts="every_token")
def moe_dispatched_everywhere(T, E, h, w, u_e, etp, t_s):
    """Every expert sees every token: the repeated states, and their product with the routing weight."""
    return 2 * T * E * etp * h * w * u_e / t_s


@term("moe.up", source="megatron-code GroupedMLP", ffn_kind="moe", experts=("routed", "clamped"))
def moe_gate_up(T, k, n_u, f_e, w_z, i_e, t_s):
    """Outputs of the experts' up, and of their gate where they have one: of etp ranks' tokens, an etp-th as wide."""
    return T * k * i_e * n_u * f_e * w_z / t_s


@term("moe.up", source="transformers-code Llama4TextExperts", ffn_kind="moe", experts="every_token")
def moe_gate_up_everywhere(T, E, f_e, w, t_s):
    """Outputs of gate and up for every token in every expert."""
    return 2 * T * E * f_e * w / t_s


@term(
    "moe.activation",
    source="transformers-code grouped_mm experts",
    ffn_kind="moe",
    experts="routed",
    implementation="reference",
)
def moe_activation_reference(T, k, n_u, f_e, w, i_e, u_e, t_s):
    """The activated gate where there is one, and what the down projection reads."""
    return T * k * i_e * f_e * w * (n_u - 1 + u_e) / t_s


@term(
    "moe.activation",
    source="megatron-code GroupedMLP",
    ffn_kind="moe",
    experts=("routed", "clamped"),
    implementation="fused",
)
def moe_activation_fused(T, k, f_e, w_u, i_e, u_e, t_s):
    """A fused kernel keeps what the down projection reads."""
    return T * k * i_e * f_e * w_u * u_e / t_s


@term(
    "moe.activation",
    source="transformers-code GptOssExperts",
    ffn_kind="moe",
    experts="clamped",
    implementation="reference",
)
def moe_activation_clamped(T, k, f_e, w, i_e, t_s):
    """Clamp, sigmoid, and the products of a clamped SwiGLU."""
    return 5 * T * k * i_e * f_e * w / t_s


@term("moe.activation", source="transformers-code Llama4TextExperts", ffn_kind="moe", experts="every_token")
def moe_activation_everywhere(T, E, f_e, w, u_e, t_s):
    """The activated gate, and its product with up, for every token in every expert."""
    return T * E * f_e * w * (1 + u_e) / t_s


@term(
    "moe.combined",
    source="transformers-code grouped_mm experts",
    ffn_kind="moe",
    experts=("routed", "clamped"),
    implementation="reference",
)
def moe_combined_reference(T, k, h, w, i_e, etp, t_s):
    """The experts' outputs, kept for the gradient of the routing weights."""
    return T * k * i_e * etp * h * w / t_s


@term("moe.shared", source="transformers-code DeepseekV3MLP", ffn_kind="moe", implementation="reference")
def moe_shared_reference(T, n_u, f_s, w, u_d, tp):
    """Shared experts: gate, up, activated gate, product; without a gate, up and its activation."""
    return T * f_s * w * (2 * n_u - 1 + u_d) / tp


@term("moe.shared", source="megatron-code SharedExpertMLP", ffn_kind="moe", implementation="fused")
def moe_shared_fused(T, n_u, f_s, w, w_z, u_d, tp):
    """Shared experts: gate, up, product; without a gate, up and its activation."""
    return T * f_s * (w_z * n_u + w * u_d) / tp


TERMS = (
    ffn_input,
    ffn_gate_up,
    ffn_up,
    ffn_activation_reference,
    ffn_activation_fused,
    ffn_activation_plain,
    ffn_activation_unfused,
    ffn_activation_relu,
    ffn_adapters,
    moe_input,
    moe_router,
    moe_dispatched,
    moe_dispatched_everywhere,
    moe_gate_up,
    moe_gate_up_everywhere,
    moe_activation_reference,
    moe_activation_fused,
    moe_activation_clamped,
    moe_activation_everywhere,
    moe_combined_reference,
    moe_shared_reference,
    moe_shared_fused,
)
