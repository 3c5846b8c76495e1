"""Describes a model by itself: parameters by component, FLOP per token, checkpoint size."""

from __future__ import annotations

from typing import Final

from advisor.architecture import count_parameters
from advisor.types import ModelAnswer, ModelArchitecture, ParameterCount
from advisor.versions import versions

#: Tokens of context at which the attention part of the FLOP count is stated.
CONTEXT: Final = 4096
CHECKPOINT_BYTES: Final = 2  # a bf16 element
FLOP_PER_MULTIPLY_ADD: Final = 2


def describe(model: ModelArchitecture) -> ModelAnswer:
    """The facts of a model that need no hardware and no training setup."""
    parameters = count_parameters(model)
    return ModelAnswer(
        name=model.name,
        model_type=model.model_type,
        exact=model.exact,
        notes=model.notes,
        parameters=parameters,
        layers=model.layers,
        hidden=model.hidden,
        vocab=model.vocab,
        max_positions=model.max_positions,
        flops_per_token_forward=flops_per_token(model, parameters),
        checkpoint_bytes=CHECKPOINT_BYTES * parameters.total + model.buffer_bytes,
        architecture=model.model_dump(mode="json", exclude_defaults=True),
        versions=versions(),
    )


def flops_per_token(model: ModelArchitecture, parameters: ParameterCount) -> int:
    """Matmul FLOP of one text token's forward pass, its attention over a full context of 4,096 tokens.

    The embedding is a lookup and norms are element-wise: neither is a matmul. Image towers see no text token.
    """
    lookup = 0 if model.tied_embeddings else parameters.embedding
    matrices = parameters.active - lookup - parameters.norms - parameters.biases - parameters.vision
    return FLOP_PER_MULTIPLY_ADD * (matrices + _attention_products(model))


def _attention_products(model: ModelArchitecture) -> int:
    """Multiply-adds of scores and weighted values over all layers, per token."""
    attention = model.attention
    window = min(attention.sliding_window or CONTEXT, CONTEXT)
    sliding = len(model.sliding_layers)
    context = (model.layers - sliding) * CONTEXT + sliding * window
    return context * attention.heads * (attention.head_dim + attention.v_head_dim)
