"""A model's architecture: the shapes that decide its parameters, its saved tensors and its FLOPs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from advisor.types.base import Count, CountOrZero, Value

NormKind = Literal["rmsnorm", "layernorm", "gemma_rmsnorm"]
AttentionKind = Literal["gqa", "mla"]


class Indexer(Value):
    """The small scoring branch of block-sparse attention (MiniMax-M3): query heads over one shared key head."""

    heads: Count
    head_dim: Count


class Attention(Value):
    """One attention block. Plain, grouped and multi-query attention are ``gqa``; DeepSeek's is ``mla``."""

    kind: AttentionKind = "gqa"
    heads: Count
    kv_heads: Count
    head_dim: Count = Field(description="width of one query head; for MLA the nope part plus the rope part")
    v_head_dim: Count = Field(description="width of one value head; equals head_dim except in MLA")
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: Literal["none", "per_head", "full", "unweighted"] = "none"
    fused_qkv: bool = Field(default=False, description="one matrix makes q, k and v (Phi-3, GPT-2, GPT-NeoX)")
    rotary_share: float = Field(default=1.0, ge=0, le=1, description="share of head_dim that is rotated")
    rotary_interleaved: bool = Field(default=False, description="rotation over even and odd columns (GLM-4)")
    query_concat: bool = Field(
        default=False,
        description="q is rebuilt by concatenation, so the attention output is copied for the output projection "
        "(Phi, Phi-3, GPT-NeoX, GLM-4 in transformers)",
    )
    softmax_fp32: bool = Field(default=True, description="eager attention keeps the softmax in fp32 and a copy")
    sinks: bool = Field(default=False, description="one learned logit per head (gpt-oss)")
    logit_softcap: bool = False
    sliding_window: CountOrZero = Field(default=0, description="tokens a sliding layer sees; 0: none slides")
    q_lora_rank: CountOrZero = 0
    kv_lora_rank: CountOrZero = 0
    qk_rope_head_dim: CountOrZero = 0
    indexer: Indexer | None = Field(default=None, description="selects key blocks in the layers of indexed_layers")
    dropout: float = Field(default=0.0, ge=0, lt=1)


class FeedForward(Value):
    """One dense feed-forward block."""

    hidden: Count
    gated: bool = True
    bias: bool = False
    fused_gate_up: bool = False
    activation: Literal["silu", "gelu", "gelu_new", "gelu_tanh", "relu"] = "silu"


class Experts(Value):
    """The routed and shared experts of a mixture-of-experts layer."""

    count: Count
    top_k: Count
    hidden: Count = Field(description="feed-forward width of one routed expert")
    gated: bool = Field(default=True, description="each expert has a gate matrix beside up and down (SwiGLU)")
    shared: CountOrZero = Field(default=0, description="shared experts a token always visits")
    shared_hidden: CountOrZero = Field(default=0, description="total feed-forward width of the shared experts")
    shared_gate: bool = False
    router_bias: bool = Field(default=False, description="the router's matrix has a bias parameter")
    router_correction_buffer: bool = Field(default=False, description="a per-expert bias that is a buffer")
    expert_bias: bool = False
    router_fp32: bool = False
    dense_experts: bool = Field(default=False, description="every expert sees every token (Llama-4 in transformers)")
    clamped_activation: bool = Field(default=False, description="gpt-oss' clamped SwiGLU")


class VisionTower(Value):
    """An image encoder and its projector, as far as memory needs them."""

    hidden: Count
    layers: Count
    heads: Count
    ffn_hidden: Count
    gated_ffn: bool = False
    patch_size: Count
    image_size: CountOrZero = 0
    tokens_per_image: CountOrZero = Field(default=0, description="tokens an image takes in the language model")
    parameters: CountOrZero = Field(description="exact parameters of tower and projector together")
    projector_parameters: CountOrZero = Field(default=0, description="the projector's share of parameters")
    norms: CountOrZero = Field(default=0, description="normalisation weights and biases, inside parameters")
    biases: CountOrZero = Field(default=0, description="bias vectors of matrices, inside parameters")


class ModelArchitecture(Value):
    """Everything memory, time and legality need to know of a model."""

    name: str
    model_type: str = Field(description="the transformers model_type, or 'custom'")
    source: str = Field(description="where the shapes come from: preset, config, hyper-parameters, size")
    exact: bool = Field(default=True, description="False for a best effort on an unknown model_type or a bare size")
    notes: tuple[str, ...] = ()
    layers: Count
    hidden: Count
    vocab: Count
    attention: Attention
    sliding_layers: tuple[int, ...] = Field(default=(), description="indices of the layers whose attention slides")
    ffn: FeedForward | None = Field(default=None, description="the dense block; None when every layer routes")
    experts: Experts | None = None
    moe_layers: tuple[int, ...] = Field(default=(), description="indices of the layers that route to experts")
    indexed_layers: tuple[int, ...] = Field(default=(), description="indices of the layers with an attention indexer")
    norm: NormKind = "rmsnorm"
    norm_bias: bool = False
    norms_per_layer: Count = 2
    final_norm: bool = True
    parallel_residual: bool = Field(default=False, description="attention and feed-forward read the same input")
    learned_positions: CountOrZero = Field(default=0, description="rows of a learned position table")
    tied_embeddings: bool = False
    head_bias: bool = False
    logit_softcap: bool = False
    embedding_norm: bool = False
    residual_dropout: float = Field(default=0.0, ge=0, lt=1)
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    mtp_layers: CountOrZero = Field(default=0, description="multi-token-prediction modules (DeepSeek-V3)")
    buffer_bytes: CountOrZero = Field(default=0, description="registered buffers, not parameters")
    max_positions: CountOrZero = Field(default=0, description="longest sequence the model was made for; 0: unknown")
    vision: VisionTower | None = None

    def __hash__(self) -> int:
        """A few fields tell models apart: counts are looked up by model, thousands of times in a search."""
        return hash((self.name, self.source, self.layers, self.hidden, self.vocab))


class ParameterCount(Value):
    """Exact parameters by component. Buffers and MTP modules are counted apart, outside ``total``."""

    embedding: CountOrZero
    attention: CountOrZero
    ffn: CountOrZero
    experts: CountOrZero
    shared_experts: CountOrZero
    router: CountOrZero
    norms: CountOrZero
    head: CountOrZero = Field(description="0 when the head shares the embedding")
    vision: CountOrZero
    biases: CountOrZero = Field(description="bias vectors, already inside the components above")
    total: CountOrZero
    active: CountOrZero = Field(description="parameters that one token's forward pass reads")
    mtp: CountOrZero = Field(description="multi-token-prediction modules, outside total")
    buffers: CountOrZero = Field(description="elements of registered buffers such as router corrections")
    per_layer: tuple[int, ...]
