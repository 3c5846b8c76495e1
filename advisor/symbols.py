"""The glossary: each letter's meaning, unit and how it is read from a place. One line a symbol.

Counting units (tokens, heads, layers, ranks) are labels and count as 1; ``B`` is a byte, ``param`` a parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from advisor.checkpoints import ROWS as CHECKPOINT_ROWS
from advisor.columnwise import Number, at_least, at_most, choose
from advisor.placement import MEGATRON, Place
from advisor.profiles import ROWS as ARTICLE_ROWS
from advisor.rates import ROWS
from advisor.releases import logits_path
from advisor.types.case import TILED
from advisor.widths import FP32, adapters_differ
from advisor.widths import ROWS as WIDTH_ROWS


@dataclass(frozen=True)
class Symbol:
    """A letter of the formulas."""

    name: str
    meaning: str
    unit: str
    read: Callable[[Place], Number]


def _kept_norm_inputs(place: Place) -> int:
    """The lowest trained layer's first norm needs no gradient of its input, so it keeps none."""
    return _norm_inputs(place) - (1 if place.group.entry else 0)


def _copies_output(place: Place) -> Number:
    """The projection reads a copy: rows of a q rebuilt by concatenation, fp8, or the sequence's part after Ulysses."""
    training, recipe = place.case.training, place.case.training.recipe
    concatenated = place.model.attention.query_concat and training.implementation == "reference"
    if concatenated or (recipe.matrix_input_bytes > 0 and not recipe.attention_output_bytes):
        return 1
    return choose(place.layout.context_parallel > 1, 1, 0) if _exchanges_heads(place) else 0


def _exchanges_heads(place: Place) -> bool:
    return place.case.layout.context_parallel_kind == "ulysses"


def _kept_key_value_heads(place: Place) -> Number:
    """Ulysses gives each rank whole heads, so a key/value head goes to every rank that has one of its queries."""
    heads = place.model.attention.kv_heads
    if not _exchanges_heads(place):
        return heads
    return at_least(heads, place.layout.context_parallel * place.layout.tensor_parallel)


def _flag(condition: bool) -> int:
    return 1 if condition else 0


def _adapted(place: Place, *names: str) -> int:
    """How many of these linear layers carry an adapter."""
    targets = place.case.training.lora_targets if place.adapters else ()
    return sum(name in targets for name in names)


def _keeps_input(place: Place, *names: str) -> int:
    """1 when one of these linear layers keeps its input: its weight, or an adapter in the same dtype, is trained."""
    if not place.adapters:
        return _flag(place.group.trained)
    training = place.case.training
    shares = not adapters_differ(place) and training.lora_dropout == 0
    return _flag(shares and _adapted(place, *names) > 0)


def _copied_inputs(place: Place, *names: str) -> int:
    """Adapted linear layers that keep a copy of their own: another dtype than the base, or dropout before A."""
    training = place.case.training
    own = adapters_differ(place) or training.lora_dropout > 0
    return _adapted(place, *names) if own else 0


#: Frameworks whose loss works on logits that tensor parallel has split; others gather them first.
VOCABULARY_PARALLEL = (*MEGATRON, "torchtitan")
QKV = ("q_proj", "k_proj", "v_proj", "q_a_proj", "kv_a_proj_with_mqa", "qkv_proj", "query_key_value", "c_attn")
OUT = ("o_proj", "dense", "c_proj")
GATE_UP = ("gate_proj", "up_proj", "gate_up_proj", "fc1", "c_fc")
DOWN = ("down_proj", "fc2")


def _splits_vocabulary(place: Place) -> bool:
    """Frameworks of their own do, and Megatron's modules under DeepSpeed; its AutoTP gathers the logits."""
    training = place.case.training
    megatrons = training.framework == "deepspeed" and training.implementation == "fused"
    return megatrons or training.framework in VOCABULARY_PARALLEL


def _ffn(place: Place) -> int:
    return place.model.ffn.hidden if place.model.ffn else 0


def _experts(place: Place, name: str) -> int:
    return getattr(place.model.experts, name) if place.model.experts else 0


def _autocast_copies(place: Place, count: int) -> int:
    """Autocast over fp32 weights casts the input anew for each linear layer that reads it."""
    return count if place.case.training.recipe.cast_copy_bytes else 1


def _norm_inputs(place: Place) -> int:
    """Norms that keep an input of their own: with a parallel residual both read the same tensor."""
    return 1 if place.model.parallel_residual else place.model.norms_per_layer


def _tile(place: Place) -> Number:
    """ALST's tiles: ceil(tokens / hidden size) of them."""
    if TILED not in place.case.layout.recompute_modules:
        return place.tokens
    return at_most(place.tokens, place.model.hidden * place.layout.micro_batch)


def _imbalance(place: Place) -> Number:
    training = place.case.training
    if training.moe_capacity_factor:
        return training.moe_capacity_factor
    return choose(place.layout.expert_parallel > 1, training.moe_imbalance, 1)


#: DeepSpeed's defaults: elements of a sub-group and the ZeRO stage that steps one after another, buffers that swapped
#: states pass through, elements of the five that swapped weights do. Of these as many as a sub-group stay (max_in_cpu).
SUB_GROUP, SUB_GROUPS_FROM = 10**9, 3
STATE_BUFFERS, WEIGHT_BUFFERS = 4, 5 * 10**8


def _stepped_share(place: Place) -> Number:
    layout, recipe = place.layout, place.case.training.recipe
    dense = (place.divided_trained + place.head_trained) / layout.tensor_parallel
    dense += place.replicated_trained + place.embedding_trained
    experts = place.experts_trained / (layout.expert_parallel * layout.expert_tensor_parallel)
    owned = dense / place.divisor(recipe.optimizer_divided_from, place.shard_ranks)
    owned += experts / place.divisor(recipe.optimizer_divided_from, place.expert_shard_ranks)
    share = at_most(SUB_GROUP / at_least(owned, 1), 1)
    return choose(layout.zero_stage >= SUB_GROUPS_FROM, share, 1)


def _adds_on_host(place: Place) -> Number:
    """Micro-batches add up in buffers of the weights' dtype; where masters are as narrow, in the optimizer's own."""
    narrow = 0 < place.case.training.recipe.master_bytes < FP32
    return 0 if narrow else choose(place.micro_batches > 1, 1, 0)


_SYMBOLS = (
    # shapes
    Symbol("h", "hidden size", "1", lambda p: p.model.hidden),
    Symbol("a", "query heads", "1", lambda p: p.model.attention.heads),
    Symbol("g", "key/value heads", "1", lambda p: p.model.attention.kv_heads),
    Symbol("g_k", "key/value heads that ranks keep: repeated under Ulysses where there are fewer than ranks", "1", _kept_key_value_heads),
    Symbol("d", "width of a query head", "1", lambda p: p.model.attention.head_dim),
    Symbol("d_v", "width of a value head", "1", lambda p: p.model.attention.v_head_dim),
    Symbol("d_r", "rotary part of an MLA head", "1", lambda p: p.model.attention.qk_rope_head_dim),
    Symbol("q_r", "rank of MLA's query compression", "1", lambda p: p.model.attention.q_lora_rank),
    Symbol("c_kv", "rank of MLA's key/value compression", "1", lambda p: p.model.attention.kv_lora_rank),
    Symbol("f", "feed-forward width", "1", _ffn),
    Symbol("V", "vocabulary", "1", lambda p: p.model.vocab),
    Symbol("E", "routed experts", "1", lambda p: _experts(p, "count")),
    Symbol("k", "experts a token visits", "1", lambda p: _experts(p, "top_k")),
    Symbol("f_e", "feed-forward width of a routed expert", "1", lambda p: _experts(p, "hidden")),
    Symbol("n_u", "matrices that read an expert's input: up, and gate where there is one", "1", lambda p: 1 + _experts(p, "gated")),
    Symbol("f_s", "feed-forward width of the shared experts together", "1", lambda p: _experts(p, "shared_hidden")),
    Symbol("n_n", "norms of a layer that keep an input of their own", "1", _norm_inputs),
    Symbol("n_i", "norms of a layer whose input needs a gradient", "1", _kept_norm_inputs),
    # the job
    Symbol("s", "tokens in a sequence", "1", lambda p: p.case.training.sequence_length),
    Symbol("b", "sequences in a micro-batch", "1", lambda p: p.layout.micro_batch),
    Symbol("T", "tokens of a micro-batch on one rank: s · b / cp", "1", lambda p: p.tokens),
    Symbol("T_f", "tokens a feed-forward works on at once: T, or a tile of as many as the hidden size from each sequence", "1", _tile),
    Symbol("i_e", "busiest expert rank over the mean", "1", _imbalance),
    Symbol("n_t", "tokens a chunk of the loss holds", "1", lambda p: _chunk(p)),
    # who shares
    Symbol("tp", "tensor-parallel ranks", "1", lambda p: p.layout.tensor_parallel),
    Symbol("t_s", "ranks that split the sequence between matrices (tp with sequence parallel)", "1", lambda p: p.sequence_ranks),
    Symbol("t_a", "ranks that split the kept input of q, k and v, and of gate and up: as t_s, but Megatron's adapters keep it gathered", "1", lambda p: 1 if p.adapters and p.case.training.framework in MEGATRON else p.sequence_ranks),
    Symbol("x_s", "1 where the sequence is split between matrices, so that gradients are gathered for them", "1", lambda p: choose(p.sequence_ranks > 1, 1, 0)),
    Symbol("cp", "context-parallel ranks", "1", lambda p: p.layout.context_parallel),
    Symbol("ep", "expert-parallel ranks", "1", lambda p: p.layout.expert_parallel),
    Symbol("etp", "tensor-parallel ranks inside an expert", "1", lambda p: p.layout.expert_tensor_parallel),
    Symbol("t_c", "ranks that split a checkpoint", "1", lambda p: p.checkpoint_ranks),
    Symbol("t_v", "ranks that split the vocabulary in the loss", "1", lambda p: p.layout.tensor_parallel if _splits_vocabulary(p) else 1),
    Symbol("z_w", "ranks that share the dense weights", "1", lambda p: p.divisor(p.case.training.recipe.weights_divided_from, p.shard_ranks)),
    Symbol("z_b", "ranks that share the quantised weights: FSDP divides them, ZeRO does not", "1", lambda p: 1 if p.case.training.framework == "deepspeed" else p.divisor(p.case.training.recipe.weights_divided_from, p.shard_ranks)),
    Symbol("z_g", "ranks that share the dense gradients", "1", lambda p: p.divisor(p.case.training.recipe.gradients_divided_from, p.shard_ranks)),
    Symbol("z_o", "ranks that share the dense optimizer states", "1", lambda p: p.divisor(p.case.training.recipe.optimizer_divided_from, p.shard_ranks)),
    Symbol("y_w", "ranks that share the expert weights", "1", lambda p: p.divisor(p.case.training.recipe.weights_divided_from, p.expert_shard_ranks)),
    Symbol("y_g", "ranks that share the expert gradients", "1", lambda p: p.divisor(p.case.training.recipe.gradients_divided_from, p.expert_shard_ranks)),
    Symbol("y_o", "ranks that share the expert optimizer states", "1", lambda p: p.divisor(p.case.training.recipe.optimizer_divided_from, p.expert_shard_ranks)),
    # parameters of the stage
    Symbol("P_t", "stage parameters that tensor parallel divides", "param", lambda p: p.divided),
    Symbol("P_l", "those of P_t that lie in the layers", "param", lambda p: p.span(p.tables.divided)),
    Symbol("P_r", "stage parameters that every tensor-parallel rank holds whole", "param", lambda p: p.replicated),
    Symbol("P_e", "stage parameters in routed experts", "param", lambda p: p.experts),
    Symbol("G_t", "trained layer parameters that tensor parallel divides", "param", lambda p: p.divided_trained),
    Symbol("G_r", "trained layer parameters held whole", "param", lambda p: p.replicated_trained),
    Symbol("G_h", "trained parameters of head and final norm", "param", lambda p: p.head_trained),
    Symbol("G_b", "trained parameters of the embedding and what feeds it, on one rank", "param", lambda p: p.embedding_trained),
    Symbol("G_e", "trained parameters in routed experts", "param", lambda p: p.experts_trained),
    Symbol("P_c", "stage parameters in matrices that autocast copies: all but the embedding table", "param", lambda p: p.cast_elements),
    Symbol("P_a", "adapter parameters on the stage", "param", lambda p: _adapter_parameters(p)),
    Symbol("N_u", "parameters of the largest sharded unit on one rank before ZeRO divides it", "param", lambda p: p.unit),
    Symbol("N_r", "parameters of the unit that holds embedding, head and final norm", "param", lambda p: p.root_unit),
    Symbol("N_g", "trained parameters of the largest sharded unit", "param", lambda p: p.unit_trained),
    Symbol("N_d", "trained parameters whose gradient exists while the feed-forward's tensors are all alive", "param", lambda p: p.unit_trained_early),
    Symbol("N_t", "parameters of the largest tensor on one rank", "param", lambda p: p.largest_tensor),
    Symbol("N_m", "elements of the largest matrix of a layer on one rank", "param", lambda p: p.largest_matrix),
    Symbol("N_h", "parameters of the head, its own or shared with the embedding", "param", lambda p: p.model.vocab * p.model.hidden * p.is_last),
    Symbol("w_y", "bytes of a logit that the caller holds", "B", lambda p: FP32 if logits_path(p.case) == "upcast_in_model" else p.case.training.recipe.activation_bytes),
    # what is trained decides what is kept
    Symbol("u_n", "1 when the norm weights are trained", "1", lambda p: _flag(p.group.trained and not p.adapters)),
    Symbol("u_f", "1 when final norm and head are trained", "1", lambda p: _flag(p.trained.head)),
    Symbol("u_m", "1 when router or shared experts keep their input", "1", lambda p: _keeps_input(p, *GATE_UP)),
    Symbol("u_b", "1 with dropout before the adapters", "1", lambda p: _flag(p.case.training.lora_dropout > 0)),
    Symbol("u_q", "1 when the input of q, k and v is kept", "1", lambda p: _keeps_input(p, *QKV)),
    Symbol("u_o", "1 when the input of the output projection is kept", "1", lambda p: _keeps_input(p, *OUT)),
    Symbol("u_g", "1 when the input of gate and up is kept", "1", lambda p: _keeps_input(p, *GATE_UP)),
    Symbol("u_d", "1 when the input of the down projection is kept", "1", lambda p: _keeps_input(p, *DOWN)),
    Symbol("u_e", "1 when the experts' weights are trained", "1", lambda p: _flag(p.group.trained and not p.adapters)),
    Symbol("c_q", "copies of the input that q, k and v keep", "1", lambda p: _autocast_copies(p, 1 if p.model.attention.fused_qkv else 3)),
    Symbol("c_g", "copies of the input that gate and up keep", "1", lambda p: _autocast_copies(p, 2 if p.model.ffn and p.model.ffn.gated and not p.model.ffn.fused_gate_up else 1)),
    Symbol("m_q", "own copies kept by adapters on q, k and v", "1", lambda p: _copied_inputs(p, *QKV)),
    Symbol("m_o", "own copies kept by the adapter on the output projection", "1", lambda p: _copied_inputs(p, *OUT)),
    Symbol("m_g", "own copies kept by adapters on gate and up", "1", lambda p: _copied_inputs(p, *GATE_UP)),
    Symbol("m_d", "own copies kept by the adapter on the down projection", "1", lambda p: _copied_inputs(p, *DOWN)),
    Symbol("n_l", "adapters in a layer", "1", lambda p: len(p.case.training.lora_targets) if p.adapters else 0),
    Symbol("r", "adapter rank", "1", lambda p: p.case.training.lora_rank),
    Symbol("u_x", "1 when the attention output is copied for its projection", "1", _copies_output),
    Symbol("x_c", "1 with context parallel", "1", lambda p: choose(p.layout.context_parallel > 1, 1, 0)),
    Symbol("u_c", "1 when attention logits are soft-capped", "1", lambda p: _flag(p.model.attention.logit_softcap)),
    Symbol("u_32", "1 when eager softmax is kept in fp32 beside its copy", "1", lambda p: _flag(p.model.attention.softmax_fp32 and p.case.training.recipe.activation_bytes < FP32)),
    Symbol("u_a", "1 with attention dropout", "1", lambda p: _flag(p.model.attention.dropout > 0)),
    Symbol("u_p", "1 with residual dropout", "1", lambda p: _flag(p.model.residual_dropout > 0)),
    Symbol("u_y", "1 when the router reads an fp32 copy, as modules do and Megatron does not", "1", lambda p: _flag(bool(p.model.experts and p.model.experts.router_fp32 and p.case.training.implementation == "reference"))),
    Symbol("u_v", "1 when logits are upcast into a copy", "1", lambda p: _flag(p.case.training.recipe.activation_bytes < FP32)),
    Symbol("u_s", "1 when the final logits are soft-capped", "1", lambda p: _flag(p.model.logit_softcap)),
    Symbol("u_l", "1 when the caller holds the logits during backward", "1", lambda p: _flag(p.case.training.keep_logits)),
    Symbol("u_h", "1 on the stage that holds the head", "1", lambda p: p.is_last),
    # fixed figures
    Symbol("B_x", "CUDA workspace of the matrix library", "B", lambda p: p.case.training.workspace_bytes),
    Symbol("n_b", "workspaces: PyTorch's; Transformer Engine's own, and those of the 4 streams of its grouped products", "1", lambda p: 1 if p.case.training.framework not in MEGATRON else 6 if p.model.experts else 2),
    Symbol("B_r", "elements of a communication bucket", "param", lambda p: at_most(p.case.training.bucket_elements, _trained(p))),
    Symbol("s_g", "share of a rank's elements that step at once: all, or a sub-group of them", "1", _stepped_share),
    Symbol("n_v", "buffers that swapped states pass through: DeepSpeed's buffer_count", "1", lambda _: STATE_BUFFERS),
    Symbol("B_v", "elements of the buffers that swapped weights pass through", "param", lambda _: WEIGHT_BUFFERS),
    Symbol("x_v", "1 where a rank's weights on NVMe are more than stay in CPU memory", "1", lambda p: choose(_stepped_share(p) < 1, 1, 0)),
    Symbol("x_g", "1 where several micro-batches' gradients add up in host buffers of their own", "1", _adds_on_host),
)  # fmt: skip


def _chunk(place: Place) -> Number:
    """Tokens of one chunk: Liger takes V / h chunks, rounded so that a chunk's logits equal the hidden states."""
    if place.case.training.loss == "fused":
        return place.tokens * place.model.hidden / place.model.vocab
    return at_most(place.tokens, CHUNK_TOKENS)


CHUNK_TOKENS = 1024


def _trained(place: Place) -> Number:
    """Trained elements of the stage."""
    layers = place.divided_trained + place.replicated_trained + place.experts_trained
    return layers + place.head_trained + place.embedding_trained


def _adapter_parameters(place: Place) -> Number:
    return place.case.adapter_parameters * place.layers / place.model.layers if place.adapters else 0


_ALL = (*_SYMBOLS, *(Symbol(*row) for row in (*WIDTH_ROWS, *CHECKPOINT_ROWS, *ROWS, *ARTICLE_ROWS)))
GLOSSARY: Mapping[str, Symbol] = {symbol.name: symbol for symbol in _ALL}


class Values(dict[str, Number]):
    """The symbols' values at one place, each read when a formula first asks for it."""

    def __init__(self, place: Place) -> None:
        super().__init__()
        self.place = place

    def __missing__(self, name: str) -> Number:
        value = self[name] = GLOSSARY[name].read(self.place)
        return value
