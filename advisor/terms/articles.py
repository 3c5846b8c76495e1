"""Memory as three articles count it: alternatives to the physics, chosen by ``profile``.

They keep the articles' simplifications on purpose: every stage is alike, one micro-batch is in flight, tensor parallel
leaves activations whole, nothing is transient. docs/articles.md says where that is wrong.
"""

from advisor.formula import term
from advisor.profiles import M3, MUST_KNOW, SIXTEEN_BYTES

EVERY = (M3, MUST_KNOW, SIXTEEN_BYTES)

# --- states ----------------------------------------------------------------------------------------------------------


@term("weights.dense", source="article-m3 §2.4", profile=EVERY)
def weights(N, w_w, tp, pp, z_3):
    """Weights, split evenly."""
    return N * w_w / (tp * pp * z_3)


@term("weights.experts", source="article-m3 §7.3", profile=EVERY)
def expert_weights(N_e, w_w, tp, pp, ep, z_3):
    """Weights of the routed experts."""
    return N_e * w_w / (tp * pp * ep * z_3)


@term("gradients.layers", source="article-m3 §2.4", profile=EVERY)
def gradients(G, w_g, tp, pp, z_2):
    """Gradients of what is trained."""
    return G * w_g / (tp * pp * z_2)


@term("gradients.experts", source="article-m3 §7.3", profile=EVERY)
def expert_gradients(G_x, w_g, tp, pp, ep, z_2):
    """Gradients of the routed experts."""
    return G_x * w_g / (tp * pp * ep * z_2)


@term("optimizer.dense", source="article-m3 §1.2", profile=EVERY)
def optimizer(G, w_m, tp, pp, z_1, phi):
    """Master copy and moments of what is trained."""
    return G * w_m / (tp * pp * z_1) * phi


@term("optimizer.experts", source="article-m3 §7.3", profile=EVERY)
def expert_optimizer(G_x, w_E, tp, pp, ep, z_1, phi):
    """Master copy and moments of the routed experts."""
    return G_x * w_E / (tp * pp * ep * z_1) * phi


@term("adapters.weights", source="article-m3 §9.1", profile=EVERY, adapters="on")
def adapter_weights(N_l, w_p):
    """Weights of the adapters."""
    return N_l * w_p


@term("adapters.gradients", source="article-m3 §9.1", profile=EVERY, adapters="on")
def adapter_gradients(N_l, w_g):
    """Gradients of the adapters."""
    return N_l * w_g


@term("adapters.optimizer", source="article-m3 §9.1", profile=EVERY, adapters="on")
def adapter_optimizer(N_l, w_m):
    """Master copy and moments of the adapters."""
    return N_l * w_m


# --- activations -----------------------------------------------------------------------------------------------------


@term("activations.layers", source="article-m3 §1.4", profile=M3)
def activations(w, rho, L, pp, b, s, cp, h):
    """34 bytes a token and hidden unit of each layer that is kept whole."""
    return 17 * w * rho * (L / pp) * b * (s / cp) * h


@term("activations.scores", source="article-m3 §1.4", profile=M3, kernel="eager")
def activation_scores(w, w_8, rho, L, pp, b, s, cp, a):
    """Scores, their softmax and its dropout mask, which flash attention does not keep."""
    return (2 * w + w_8) * rho * (L / pp) * b * (s / cp) * s * a


@term("activations.checkpoints", source="article-m3 §5.2", profile=(M3, SIXTEEN_BYTES))
def checkpoints(w, kappa, L, pp, b, s, cp, h):
    """The input of each layer that is recomputed."""
    return w * kappa * (L / pp) * b * (s / cp) * h


@term("activations.attention", source="article-must-know §3.3", profile=MUST_KNOW)
def attention_kept(w, rho, L, pp, b, s, h, g, a):
    """Inputs of norms and projections in attention; keys and values by their heads."""
    return (4 * w + 2 * w * g / a) * rho * (L / pp) * b * s * h


@term("activations.scores", source="article-must-know §3.3", profile=MUST_KNOW, kernel="eager")
def scores_kept(w, w_8, rho, L, pp, b, s, a):
    """Scores, dropout mask and dropped scores."""
    return (2 * w + w_8) * rho * (L / pp) * b * s * s * a


@term("activations.feed_forward", source="article-must-know §3.3", profile=MUST_KNOW)
def feed_forward_kept(w, rho, L, pp, b, s, f, h):
    """Four tensors of the feed-forward's width, and its input."""
    return (4 * w * f + w * h) * rho * (L / pp) * b * s


@term("activations.ends", source="article-must-know §3.3", profile=MUST_KNOW)
def ends_kept(w, b, s, h):
    """Embedding and the input of the head."""
    return 2 * w * b * s * h


@term("activations.layers", source="article-16-bytes §3", profile=SIXTEEN_BYTES)
def doubled_rows(w, rho, L, b, s, h):
    """60 bytes a token and hidden unit of each layer: rows that were bytes already, doubled."""
    return 30 * w * rho * L * b * s * h


@term("activations.scores", source="article-16-bytes §3", profile=SIXTEEN_BYTES, kernel="eager")
def doubled_scores(w, w_8, rho, L, b, a, s):
    """Scores, softmax and mask, doubled."""
    return (4 * w + 2 * w_8) * rho * L * b * a * s * s


# --- beside the layers -----------------------------------------------------------------------------------------------


@term("loss.logits", source="article-16-bytes §8", profile=SIXTEEN_BYTES)
def logits(b, s, V, w_32):
    """One fp32 copy of the logits."""
    return b * s * V * w_32


@term("overhead.supposed", source="article-16-bytes §10", profile=(MUST_KNOW, SIXTEEN_BYTES))
def supposed(B_s):
    """What the author adds without counting: buffers (5 GB), or context and expert exchange (1 GB and 0.3 GB)."""
    return B_s


@term("host.optimizer", source="article-m3 §6.1", profile=EVERY)
def offloaded_optimizer(G, G_x, w_m, w_E, tp, pp, ep, z_1, phi):
    """Master copies and moments that rest in host memory."""
    return (G * w_m / (tp * pp * z_1) + G_x * w_E / (tp * pp * ep * z_1)) * (1 - phi)


ARTICLE_TERMS = (
    weights,
    expert_weights,
    gradients,
    expert_gradients,
    optimizer,
    expert_optimizer,
    adapter_weights,
    adapter_gradients,
    adapter_optimizer,
    activations,
    activation_scores,
    checkpoints,
    attention_kept,
    scores_kept,
    feed_forward_kept,
    ends_kept,
    doubled_rows,
    doubled_scores,
    logits,
    supposed,
    offloaded_optimizer,
)
