"""Formulas of the articles that follow from shapes: single tensors, recompute, parameter counts, adapters, images."""

from functools import partial

from advisor.articles.letters import LETTERS
from advisor.formula import term

formula = partial(term, glossary=LETTERS)

# --- single tensors --------------------------------------------------------------------------------------------------


@formula("activations", source="article-m3 §1.4")
def linear_coefficient(w):
    """Bytes a token and hidden unit of one layer, without the scores."""
    return 17 * w


@formula("activations", source="article-m3 §1.4")
def score_coefficient(w, w_8, a, s, h):
    """Bytes a token and hidden unit of one layer's scores."""
    return (2 * w + w_8) * a * s / h


@formula("activations", source="article-m3 §5.2")
def checkpoint_coefficient(w):
    """Bytes a token and hidden unit of one recomputed layer."""
    return w


@formula("activations", source="article-must-know §3.3")
def projections_kept(w, b, s, h, g, a):
    """Queries, keys and values."""
    return w * b * s * (h + 2 * h * g / a)


@formula("activations", source="article-must-know §3.3")
def scores_row(w, L, b, a, s):
    """One matrix of scores a head."""
    return w * L * b * a * s * s


@formula("activations", source="article-must-know §3.3")
def mask_row(w_8, b, a, s):
    """One dropout mask of the scores."""
    return w_8 * b * a * s * s


@formula("activations", source="article-16-bytes §3")
def fourfold_row(w, b, s, h):
    """A tensor four times as wide as the hidden state."""
    return 4 * w * b * s * h


@formula("activations", source="article-16-bytes §3")
def rows_once(w, b, s, h):
    """The printed rows that grow with the sequence, once."""
    return 16 * w * b * s * h


@formula("activations", source="article-16-bytes §9")
def working_layer(w, b, s, h):
    """The layer that is being recomputed, with the article's doubled coefficient."""
    return 30 * w * b * s * h


@formula("activations", source="article-must-know §Q15")
def tensor_parallel_layer(a, s, h, tp):
    """Bytes a token and hidden unit when tensor parallel divides the matrices' tensors only."""
    return 10 + 24 / tp + 5 * a * s / (h * tp)


@formula("activations", source="article-must-know §Q15")
def sequence_parallel_layer(tp):
    """The same with sequence parallel and without kept scores."""
    return 34 / tp


@formula("activations", source="article-m3 §4.1")
def kept_keys_values(w, L, g, d, s, cp):
    """Keys and values for the backward pass. The 34 bytes hold them already."""
    return 2 * w * L * g * d * s / cp


@formula("activations", source="article-16-bytes §9")
def router_row(w, L, b, s, E):
    """Scores of the router."""
    return w * L * b * s * E


@formula("activations", source="article-16-bytes §9")
def chosen_row(w_32, b, s, k):
    """Scores of the chosen experts."""
    return w_32 * b * s * k


@formula("activations", source="article-16-bytes §9")
def routed_kept(w, b, s, k, f_e):
    """Two tensors of the routed experts' width for each token and expert."""
    return 2 * w * b * s * k * f_e


@formula("activations", source="article-16-bytes §9")
def shared_kept(w, b, s, f_s):
    """Two tensors of the shared experts' width."""
    return 2 * w * b * s * f_s


@formula("activations", source="article-16-bytes §5")
def alpha_flash(b, s, h):
    """Activation bytes a parameter with flash attention."""
    return b * s / h * 5


@formula("activations", source="article-16-bytes §5")
def alpha_scores(a, s, h):
    """What scores add to the 5 in alpha."""
    return 5 * a * s / (6 * h)


@formula("activations", source="article-16-bytes §5")
def alpha_whole(b, s, h, a):
    """Activation bytes a parameter."""
    return b * s / h * (5 + 5 * a * s / (6 * h))


@formula("activations", source="article-16-bytes §10")
def activations_by_alpha(mu, alpha, N_a):
    """Activations in proportion to the parameters a token uses."""
    return mu * alpha * N_a


# --- recompute -------------------------------------------------------------------------------------------------------


@formula("recompute", source="article-m3 §5.2")
def every_k_error(K):
    """How far 34 / K lies below what keeping every K-th layer whole costs."""
    return ((34 + 2 * (K - 1)) / K - 34 / K) / ((34 + 2 * (K - 1)) / K)


@formula("recompute", source="article-m3 §5.2")
def every_k_cost(K):
    """Share of a step that recomputing all but every K-th layer adds."""
    return (K - 1) / K / 3


@formula("recompute", source="article-must-know §3.4")
def root_layers(L):
    """Layers kept: the root of their number."""
    return L**0.5


# --- parameters ------------------------------------------------------------------------------------------------------


@formula("parameters", source="article-16-bytes §5")
def rough_count(L, h):
    """Parameters of a plain transformer without its embedding."""
    return 12 * L * h**2


@formula("parameters", source="article-must-know §1.5")
def llama_count(V, h, L, g, a, f):
    """Parameters of a Llama: exact where heads times their width is the hidden size."""
    return V * h + L * (h + (2 + 2 * g / a) * h**2 + h + 3 * h * f) + h + h * V


@formula("parameters", source="article-m3 §7.1")
def embeddings(V, h):
    """Embedding and head."""
    return 2 * V * h


@formula("parameters", source="article-m3 §7.1")
def attention_count(L, h, a, g, d):
    """The four projections."""
    return L * (2 * h * a * d + 2 * h * g * d)


@formula("parameters", source="article-16-bytes §9")
def key_value_count(h, g, d):
    """Two projections of keys and values."""
    return 2 * h * g * d


@formula("parameters", source="article-m3 §7.1")
def gated_experts_count(L, E, h, f_e):
    """Three matrices an expert, and the router."""
    return L * (E * 3 * h * f_e + E * h)


@formula("parameters", source="article-16-bytes §9")
def doubled_experts_count(E, h, f_e):
    """Two matrices an expert, doubled."""
    return 4 * E * h * f_e


@formula("parameters", source="article-16-bytes §9")
def doubled_shared_count(h, f_s):
    """Two matrices of the shared experts, doubled."""
    return 4 * h * f_s


@formula("parameters", source="article-16-bytes §9")
def printed_layers(L, x_1, x_2, x_3, x_4):
    """Printed parts of a layer, and what lies outside the layers."""
    return L * (x_1 + x_2 + x_3) + x_4


# --- adapters --------------------------------------------------------------------------------------------------------


@formula("adapters", source="article-m3 §9.2")
def adapters(L, h, r):
    """Adapters on four square projections of each layer."""
    return 8 * L * h * r


@formula("adapters", source="article-16-bytes §7")
def adapter_pair(h, r):
    """One adapter on a square matrix."""
    return 2 * h * r


@formula("adapters", source="article-m3 §9.5")
def all_linear_adapters(L, h, f, r):
    """Adapters on all seven matrices of each layer."""
    return L * (8 * h + 3 * (h + f)) * r


@formula("adapters", source="article-m3 §9.4")
def dequantised_matrix(w, h, f):
    """One matrix, dequantised."""
    return w * h * f


# --- images ----------------------------------------------------------------------------------------------------------


@formula("images", source="article-m3 §8.2")
def sequence_with_images(s_t, n_v, n_m):
    """Text and image tokens."""
    return s_t + n_v * n_m


@formula("images", source="article-m3 §8.2")
def image_growth(n_v, n_m, s_t):
    """What images add to the sequence."""
    return n_v * n_m / s_t


@formula("images", source="article-m3 §8.2")
def checkpoints_with_images(w, L, pp, b, s_t, n_v, n_m, h):
    """Inputs of recomputed layers over text and image tokens."""
    return w * (L / pp) * b * (s_t + n_v * n_m) * h


@formula("images", source="article-m3 §8.3")
def projector_count(h_v, h):
    """Parameters of the projector; the 2 is the article's."""
    return 2 * h_v * h + h * h


@formula("images", source="article-m3 §8.3")
def projector_weights(w_w, h_v, h):
    """Its weights."""
    return w_w * (2 * h_v * h + h * h)


SHAPES = (
    linear_coefficient, score_coefficient, checkpoint_coefficient, projections_kept, scores_row, mask_row, fourfold_row,
    rows_once, working_layer, tensor_parallel_layer, sequence_parallel_layer, kept_keys_values, router_row, chosen_row,
    routed_kept, shared_kept, alpha_flash, alpha_scores, alpha_whole, activations_by_alpha, every_k_error, every_k_cost,
    root_layers, rough_count, llama_count, embeddings, attention_count, key_value_count, gated_experts_count,
    doubled_experts_count, doubled_shared_count, printed_layers, adapters, adapter_pair, all_linear_adapters,
    dequantised_matrix,
    sequence_with_images, image_growth, checkpoints_with_images, projector_count, projector_weights,
)  # fmt: skip
