"""Formulas of the articles on bytes a parameter, ranks, exchange and offload; and arithmetic on printed numbers."""

from functools import partial

from advisor.articles.letters import LETTERS
from advisor.formula import term

formula = partial(term, glossary=LETTERS)

# --- bytes a parameter -----------------------------------------------------------------------------------------------


@formula("states", source="article-16-bytes §1")
def bytes_per_parameter(w_w, w_g, w_m):
    """Weight, gradient and optimizer bytes of one trained parameter."""
    return w_w + w_g + w_m


@formula("states", source="article-m3 §intro")
def inference_bytes(w_w):
    """Inference holds the weights alone."""
    return w_w


@formula("states", source="article-m3 §1.2")
def optimizer_bytes(w_1, w_2, w_3):
    """Master copy and moments of one parameter."""
    return w_1 + w_2 + w_3


@formula("states", source="article-16-bytes §5")
def total_by_alpha(N, w_w, w_g, w_m, alpha):
    """States and activations, both in proportion to the parameters."""
    return N * (w_w + w_g + w_m + alpha)


# --- ranks -----------------------------------------------------------------------------------------------------------


@formula("ranks", source="article-m3 §7.2")
def mesh(tp, pp, ep, dp):
    """GPUs, when expert parallel counts as a dimension of its own."""
    return tp * pp * ep * dp


@formula("ranks", source="article-must-know §5.5")
def data_ranks(n, tp, pp):
    """What the other dimensions leave to data parallel."""
    return n / (tp * pp)


@formula("ranks", source="article-m3 §2.3")
def global_batch(dp, b, m):
    """Sequences of an optimizer step."""
    return dp * b * m


@formula("ranks", source="article-m3 §2.2")
def stage_layers(L, pp):
    """Layers of a pipeline stage."""
    return L / pp


@formula("ranks", source="article-m3 §7.2")
def rank_experts(E, ep):
    """Experts on one rank."""
    return E / ep


@formula("ranks", source="article-m3 §6.1")
def rank_parameters(N, tp, pp, z_1):
    """Parameters that one rank steps."""
    return N / (tp * pp * z_1)


@formula("ranks", source="article-m3 §7.2")
def rank_expert_parameters(N_e, tp, pp, ep):
    """Expert parameters on one rank."""
    return N_e / (tp * pp * ep)


@formula("ranks", source="article-m3 §1.5")
def capacity(C):
    """Memory of one GPU."""
    return C


@formula("ranks", source="article-m3 §3.3")
def replicated_gather(N, w_w, n_r):
    """Gathered weights of hybrid sharding, as the article divides them: each replica rebuilds the whole in fact."""
    return N * w_w / n_r


# --- exchange and offload --------------------------------------------------------------------------------------------


@formula("exchange", source="article-16-bytes §9")
def expert_tokens(b, s, k, ep):
    """Tokens that one rank of experts receives."""
    return b * s * k / ep


@formula("exchange", source="article-16-bytes §9")
def exchange_buffer(ep, n_j, h, w):
    """Buffers to send tokens to experts and back."""
    return 2 * ep * n_j * h * w


@formula("exchange", source="article-m3 §6.1")
def offload_traffic(N, w_g, w_w, tp, pp, z_1):
    """Gradients down and weights up, a step."""
    return (w_g + w_w) * N / (tp * pp * z_1)


@formula("exchange", source="article-m3 §6.1")
def offload_seconds(N, w_g, w_w, tp, pp, z_1, W_h):
    """That traffic over the host link."""
    return (w_g + w_w) * N / (tp * pp * z_1) / W_h


@formula("exchange", source="article-m3 §6.1")
def host_step_seconds(N, tp, pp, z_1, R_h):
    """The optimizer step on the host, each GPU's share alone."""
    return N / (tp * pp * z_1) / R_h


@formula("exchange", source="article-16-bytes §8")
def loader_batch(b, s, w_0):
    """One batch of the data loader."""
    return b * s * w_0


# --- arithmetic on printed numbers -----------------------------------------------------------------------------------


@formula("printed", source="article-16-bytes §7")
def printed_sum(x_1, x_2, x_3, x_4, x_5, x_6, x_7):
    """Rows that an article adds up."""
    return x_1 + x_2 + x_3 + x_4 + x_5 + x_6 + x_7


@formula("printed", source="article-m3 §7.6")
def printed_product(x_1, x_2):
    """Two printed numbers, multiplied."""
    return x_1 * x_2


@formula("printed", source="article-m3 §7.6")
def printed_factors(x_1, x_2, x_3, x_4):
    """Savings of different components, multiplied. The product divides nothing that exists."""
    return x_1 * x_2 * x_3 * x_4


@formula("printed", source="article-m3 §1.4")
def printed_ratio(x_1, x_2):
    """One printed number over another."""
    return x_1 / x_2


@formula("printed", source="article-16-bytes §6")
def printed_saving(x_1, x_2):
    """What one number saves of another."""
    return 1 - x_1 / x_2


@formula("printed", source="article-m3 §units")
def printed_excess(x_1, x_2):
    """By how much one number exceeds another."""
    return x_1 / x_2 - 1


@formula("printed", source="article-m3 §8.2")
def squared_growth(x_1, x_2):
    """How what is quadratic in the sequence grows."""
    return (x_1 / x_2) ** 2


SHARES = (
    bytes_per_parameter, inference_bytes, optimizer_bytes, total_by_alpha, mesh, data_ranks, global_batch, stage_layers,
    rank_experts, rank_parameters, rank_expert_parameters, capacity, replicated_gather, expert_tokens, exchange_buffer,
    offload_traffic, offload_seconds, host_step_seconds, loader_batch, printed_sum, printed_product, printed_factors,
    printed_ratio, printed_saving, printed_excess, squared_growth,
)  # fmt: skip
