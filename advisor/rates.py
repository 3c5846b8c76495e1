"""What time is computed from: the rates of a device, the bandwidth a group of ranks shares, efficiencies in use.

Rows of the glossary: name, meaning, unit, how it is read from a place. Ranks lie in the order tensor, context, data,
pipeline, experts inside the first three, so a group's bandwidth follows from how many of its ranks share a fast domain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from advisor.catalog.efficiencies import efficiencies, hosts, matmul_ceiling
from advisor.catalog.frameworks import find_framework
from advisor.columnwise import Number, at_least, at_most, choose
from advisor.placement import Place
from advisor.types.case import Case

Row = tuple[str, str, str, Callable[[Place], Number]]

#: First words of precisions whose matrices are multiplied in eight bits; attention and head stay in sixteen.
EIGHT_BIT = ("fp8", "mxfp8", "nvfp4")


def eight_bit_precision(precision: str) -> bool:
    """Whether a precision multiplies the layers' matrices in eight bits."""
    return precision.startswith(EIGHT_BIT)


def _matrix_rate(place: Place) -> float:
    number_format = "fp8" if eight_bit_precision(place.case.training.precision) else "bf16"
    return matmul_ceiling(place.case.cluster.device, number_format)


def _keys(place: Place) -> float:
    """Keys a query sees on average: half the sequence under a causal mask, at most its window in a sliding layer."""
    length, model = place.case.training.sequence_length, place.model
    window = min(model.attention.sliding_window or length, length)
    sliding = len(model.sliding_layers) / model.layers
    return sliding * (window - window * window / (2 * length)) + (1 - sliding) * length / 2


# --- bandwidth -------------------------------------------------------------------------------------------------------


def _fast(place: Place) -> float:
    return place.case.cluster.device.scale_up_bytes_per_s or place.case.cluster.device.host_link_bytes_per_s


def _network(place: Place) -> float:
    cluster = place.case.cluster
    return cluster.network_bytes_per_s or cluster.device.host_link_bytes_per_s


def _domain(place: Place) -> int:
    """GPUs that reach each other without the network: the fast domain, or a node whose GPUs share PCIe."""
    cluster = place.case.cluster
    return cluster.fast_domain if cluster.fast_domain > 1 else min(cluster.gpus_per_node, cluster.gpus)


def together(place: Place, stride: Number, ranks: Number) -> Number:
    """Ranks of a group that share one fast domain, when its neighbours lie ``stride`` GPUs apart."""
    return at_most(at_least(_domain(place) / stride, 1), ranks)


def _beyond(place: Place, span: Number, cards: Number) -> Number:
    """Bytes/s outside the fast domain: the host link within a node, else the network through several cards."""
    cluster = place.case.cluster
    network = at_most(_network(place) * cards, _fast(place))
    return choose(span <= cluster.gpus_per_node, cluster.device.host_link_bytes_per_s, network)


def ring_bandwidth(place: Place, stride: Number, ranks: Number) -> Number:
    """Bytes/s of a ring through a group: every rank that shares a domain adds its own network card."""
    inside = together(place, stride, ranks)
    return choose(inside >= ranks, _fast(place), _beyond(place, stride * ranks, inside))


def _tensor_stride(place: Place) -> Number:
    return place.layout.tensor_parallel


def _replica_ranks(place: Place) -> Number:
    """GPUs of one pipeline stage: tensor, context and data parallel."""
    layout = place.layout
    return layout.tensor_parallel * layout.context_parallel * layout.data_parallel


def _expert_stride(place: Place) -> Number:
    return place.layout.expert_parallel * place.layout.expert_tensor_parallel


def _context_bandwidth(place: Place) -> Number:
    """A ring's neighbours across domains send through one card each."""
    span = _tensor_stride(place) * place.layout.context_parallel
    return choose(span <= _domain(place), _fast(place), _beyond(place, span, 1))


def _pipeline_bandwidth(place: Place) -> Number:
    span = 2 * _replica_ranks(place)
    return choose(span <= _domain(place), _fast(place), _beyond(place, span, 1))


def _replicate_bandwidth(place: Place) -> Number:
    """Replicas of a sharded group lie a whole group apart."""
    return ring_bandwidth(place, _tensor_stride(place) * place.shard_ranks, place.layout.data_parallel_replicate)


def _shard_bandwidth(place: Place) -> Number:
    return ring_bandwidth(place, _tensor_stride(place), place.shard_ranks)


def _expert_bandwidth(place: Place) -> Number:
    return ring_bandwidth(place, _expert_stride(place), place.expert_shard_ranks)


def _expert_network(place: Place) -> Number:
    return _beyond(place, _expert_stride(place), 1)


def _of_node(place: Place, what: str) -> float:
    return hosts()[what] / place.case.cluster.gpus_per_node


def _data_ranks(place: Place) -> Number:
    return place.layout.data_parallel * place.layout.context_parallel


def _gatherings(place: Place) -> Number:
    """Once for both passes where the weights stay gathered between them."""
    return 1 + choose(place.layout.reshard_after_forward, 1, 0)


def _outside(place: Place) -> Number:
    """Copies of a token that leave its domain: a domain that hosts several of its experts gets one copy."""
    ranks = place.layout.expert_parallel
    inside = together(place, place.layout.expert_tensor_parallel, ranks)
    routed = place.model.experts.top_k if place.model.experts else 0
    return at_most(routed * (1 - inside / ranks), at_least(ranks / inside - 1, 0))


def _too_large(place: Place) -> Number:
    """A matrix larger than the framework's gather bucket is not fetched ahead; without a bucket every layer is."""
    bucket = find_framework(place.case.training.framework).gather_bucket_elements
    return choose(place.largest_matrix > bucket, 1, 0) if bucket else 0


def _units(place: Place) -> Number:
    """A layer at once, or matrix by matrix where a matrix is too large to be gathered with others."""
    matrices = 7 if place.model.ffn is None or place.model.ffn.gated else 4
    return place.layers * choose(_too_large(place) > 0, matrices, 1)


def in_use(case: Case, shares: Mapping[str, Number]) -> dict[str, Number]:
    """The symbols of efficiencies for a case, from their values in the catalog: by format, kernel and generation."""
    return _chosen(shares, case.training.precision, case.training.implementation, case.cluster.device.generation)


def _chosen(shares: Mapping[str, Number], precision: str, implementation: str, generation: str) -> dict[str, Number]:
    symbols = {name: value for name, value in shares.items() if name not in CHOSEN}
    symbols["eta_b"] = shares["eta_m"]
    symbols["eta_m"] = shares["eta_8" if eight_bit_precision(precision) else "eta_m"]
    kernels = "eta_a" if implementation == "fused" else "eta_f"
    symbols["eta_a"] = shares["eta_p" if generation == "ampere" else kernels]
    return symbols


@lru_cache(maxsize=256)
def _from_catalog(precision: str, implementation: str, generation: str) -> Mapping[str, Number]:
    return _chosen(efficiencies(), precision, implementation, generation)


#: Efficiencies of which a case uses one.
CHOSEN = ("eta_m", "eta_8", "eta_a", "eta_f", "eta_p")


def made(_: Place) -> Number:
    """A value that a formula itself makes, and that is set before another formula asks for it."""
    raise LookupError("set by advisor.timing")


def _fitted(name: str) -> Callable[[Place], Number]:
    def read(place: Place) -> Number:
        training = place.case.training
        return _from_catalog(training.precision, training.implementation, place.case.cluster.device.generation)[name]

    return read


ROWS: tuple[Row, ...] = (
    # counts
    ("m", "micro-batches of a step", "1", lambda p: p.micro_batches),
    ("pp", "pipeline stages", "1", lambda p: p.layout.pipeline_parallel),
    ("v", "pieces of a stage that interleave", "1", lambda p: p.layout.virtual_stages),
    ("n_k", "keys a query sees on average", "1", _keys),
    ("n_p", "passes over one layer in a step, on one rank", "1", made),
    ("u_t", "1 with tensor parallel", "1", lambda p: choose(p.layout.tensor_parallel > 1, 1, 0)),
    ("u_k", "1 with expert parallel", "1", lambda p: choose(p.layout.expert_parallel > 1, 1, 0)),
    ("n_o", "copies of a token that leave its fast domain", "1", _outside),
    ("n_d", "ranks that reduce dense gradients together", "1", _data_ranks),
    ("n_x", "ranks that reduce expert gradients together", "1", lambda p: p.expert_data_ranks),
    ("n_r", "replicas of a sharded group", "1", lambda p: p.layout.data_parallel_replicate),
    ("n_g", "gatherings of a weight in one micro-batch", "1", _gatherings),
    ("n_c", "units of weights that a stage gathers one by one", "1", _units),
    ("u_w", "1 where a unit of weights is too large to be gathered ahead", "1", _too_large),
    # work: FLOP of one token's forward pass, matrices of one layer
    ("F_a", "FLOP of a token in the matrices of attention", "FLOP", made),
    ("F_u", "FLOP of a token in MLA's up-projections", "FLOP", made),
    ("F_k", "FLOP of a token in the scores of attention", "FLOP", made),
    ("F_f", "FLOP of a token in the dense feed-forward", "FLOP", made),
    ("F_e", "FLOP of a token in one routed expert", "FLOP", made),
    ("F_s", "FLOP of a token in router and shared experts", "FLOP", made),
    ("F_v", "FLOP of a token in the head", "FLOP", made),
    ("F_l", "FLOP of a token in the adapters of a stage", "FLOP", made),
    ("N_o", "trained elements whose states a rank holds", "param", made),
    # rates
    ("R_m", "measured ceiling of matrices in the layers' format", "FLOP/s", _matrix_rate),
    ("R_b", "measured ceiling of bf16 matrices", "FLOP/s", lambda p: matmul_ceiling(p.case.cluster.device, "bf16")),
    ("W_m", "bandwidth of the device's memory", "B/s", lambda p: p.case.cluster.device.memory_bytes_per_s),
    ("W_t", "bandwidth of a tensor-parallel group", "B/s", lambda p: ring_bandwidth(p, 1, p.layout.tensor_parallel)),
    ("W_c", "bandwidth between context-parallel neighbours", "B/s", _context_bandwidth),
    ("W_f", "bandwidth inside a fast domain", "B/s", _fast),
    ("W_o", "bandwidth of a GPU outside its fast domain", "B/s", _expert_network),
    ("W_p", "bandwidth between pipeline stages", "B/s", _pipeline_bandwidth),
    ("W_d", "bandwidth of the ranks that share dense states", "B/s", _shard_bandwidth),
    ("W_x", "bandwidth of the ranks that share expert states", "B/s", _expert_bandwidth),
    ("W_r", "bandwidth between replicas", "B/s", _replicate_bandwidth),
    ("W_h", "bandwidth between a GPU and its host", "B/s", lambda p: p.case.cluster.device.host_link_bytes_per_s),
    ("W_q", "bandwidth of a node's memory in use, a GPU's share", "B/s", lambda p: _of_node(p, "memory")),
    ("W_v", "bandwidth of a node's NVMe, a GPU's share", "B/s", lambda p: _of_node(p, "nvme")),
    # efficiencies in use
    ("eta_m", "share of the ceiling that large matrices reach in training", "1", _fitted("eta_m")),
    ("eta_b", "share of the bf16 ceiling that large bf16 matrices reach in training", "1", _fitted("eta_b")),
    ("eta_x", "the experts' share of what large matrices reach", "1", _fitted("eta_x")),
    ("eta_a", "share of the bf16 ceiling that attention kernels reach", "1", _fitted("eta_a")),
    ("eta_h", "share of memory bandwidth that element-wise kernels reach", "1", _fitted("eta_h")),
    ("eta_w", "share of a link that collectives reach", "1", _fitted("eta_w")),
    ("xi_t", "share of tensor-parallel exchange that waits", "1", _fitted("xi_t")),
    ("xi_e", "share of expert exchange that waits", "1", _fitted("xi_e")),
    ("xi_d", "share of an exchange that waits even where computing could hide it", "1", _fitted("xi_d")),
    ("n_0", "tokens that a matrix multiplication costs beyond its own", "1", _fitted("n_0")),
    ("tau_d", "host time to launch one pass over a dense layer", "s", _fitted("tau_d")),
    ("tau_e", "host time to launch one pass over an expert layer", "s", _fitted("tau_e")),
    ("tau_l", "latency of one collective", "s", _fitted("tau_l")),
    ("tau_r", "latency from rank to rank in a gathering", "s", _fitted("tau_r")),
    # sums of other formulas
    ("t_g", "time the GPU computes in a step", "s", made),
    ("t_h", "time the host needs to launch a step", "s", made),
    ("t_b", "time the slowest stage is busy in a step", "s", made),
    ("t_w", "time attention computes in a step", "s", made),
    ("B_l", "bytes a layer keeps for its backward pass, mean of the stage", "B", made),
    ("t_x", "time of an exchange in a step", "s", made),
)  # fmt: skip
