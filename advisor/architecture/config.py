"""Reads a transformers config.json, or the same facts under other names, into a ModelArchitecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.architecture.blocks import (
    ACTIVATIONS,
    MOST_HIDDEN,
    dropout_of,
    read_attention,
    read_experts,
    read_ffn,
    setting_of,
)
from advisor.architecture.families import FAMILIES, UNKNOWN, Family
from advisor.architecture.fields import MOST_LAYERS, Fields, missing
from advisor.architecture.layers import indexed_layers, routing_layers, sliding_layers, unusual_kinds
from advisor.architecture.vision import read_vision
from advisor.errors import AdvisorError, nearest
from advisor.types import Experts, ModelArchitecture

_REQUIRED = ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size")


def read_config(config: Mapping[str, Any], *, name: str, source: str, pointer: str = "") -> ModelArchitecture:
    """The architecture that a config.json object describes.

    A model_type in ``FAMILIES`` is read exactly. Another one is read as Llama-like as far as its fields go, marked
    ``exact=False`` with a note that says so.

    Raises:
        AdvisorError: ``incomplete_config`` naming the absent fields, ``invalid_value`` with a pointer to the field,
            ``unsupported_model`` for encoder-decoder models.
    """
    top = Fields(config, pointer)
    if top.flag("is_encoder_decoder", absent=False):
        detail = "is_encoder_decoder is true; accepted: decoder-only language models"
        raise AdvisorError("unsupported_model", detail, pointer=f"{pointer}/is_encoder_decoder")
    text = top.inside("text_config") or top.inside("llm_config") or top
    top_type = top.text("model_type", "")
    model_type = (text.text("model_type", "") or top_type)[:80]
    family = FAMILIES.get(model_type) or FAMILIES.get(top_type)
    fields = text.with_defaults(
        {"tie_word_embeddings": top.data.get("tie_word_embeddings"), **(family or UNKNOWN).defaults}
    )
    model = read_fields(fields, family or UNKNOWN, name=name, model_type=model_type or "unknown", source=source)
    tower = read_vision(top, top_type, model.hidden)
    notes = [*model.notes, *_doubts(top, family, model_type, tower is None)]
    return model.model_copy(update={"vision": tower, "notes": tuple(notes), "exact": not notes})


def _doubts(top: Fields, family: Family | None, model_type: str, no_tower: bool) -> list[str]:
    """Sentences on what could not be read exactly."""
    doubts = []
    if family is None:
        close = nearest(model_type, FAMILIES)
        hint = f" (nearest known: {', '.join(close)})" if close else ""
        what = f"model_type {model_type[:60]!r} is not known{hint}" if model_type else "no model_type is given"
        doubts.append(f"{what}: read as Llama-like from its fields")
    if top.has("vision_config") and no_tower:
        doubts.append("the vision tower of this model_type is not known and not counted")
    return doubts


def read_fields(fields: Fields, family: Family, *, name: str, model_type: str, source: str) -> ModelArchitecture:
    """The language model that a flat object describes, given what its family adds.

    Raises:
        AdvisorError: as ``read_config``.
    """
    absent = [field for field in _REQUIRED if not fields.has(field)]
    if absent:
        raise missing(fields, absent)
    layers = fields.count("num_hidden_layers", at_most=MOST_LAYERS)
    hidden = fields.count("hidden_size", at_most=MOST_HIDDEN)
    experts = read_experts(fields, family)
    routed = routing_layers(fields, layers, family) if experts else ()
    sliding, indexed = sliding_layers(fields, layers, family), indexed_layers(fields, layers)
    return ModelArchitecture(
        name=name,
        model_type=model_type,
        source=source,
        notes=_unusual(fields, family, hidden, layers),
        layers=layers,
        hidden=hidden,
        vocab=fields.count("vocab_size"),
        attention=read_attention(fields, family, hidden, slides=bool(sliding), indexed=bool(indexed)),
        sliding_layers=sliding,
        ffn=read_ffn(fields, family, hidden, routes=bool(experts)) if len(routed) < layers else None,
        experts=experts if routed else None,
        moe_layers=routed,
        indexed_layers=indexed,
        norm=family.norm,
        norm_bias=family.norm_bias,
        norms_per_layer=family.norms_per_layer,
        parallel_residual=setting_of(fields, family.parallel_residual),
        learned_positions=_position_rows(fields, family),
        tied_embeddings=fields.flag("tie_word_embeddings", family.tied),
        head_bias=family.head_bias,
        logit_softcap=fields.has("final_logit_softcapping"),
        residual_dropout=dropout_of(fields, "residual_dropout"),
        embedding_dropout=dropout_of(fields, "embedding_dropout"),
        mtp_layers=fields.count_or("num_nextn_predict_layers", 0, at_least=0, at_most=64),
        buffer_bytes=_buffer_bytes(experts, len(routed)),
        max_positions=fields.count_or("max_position_embeddings", 0, at_least=0, at_most=10**9),
    )


def _unusual(fields: Fields, family: Family, hidden: int, layers: int) -> tuple[str, ...]:
    """Notes on parts that this reading does not cover."""
    notes = [f"layers of kind {kind[:40]!r} are read as attention layers" for kind in unusual_kinds(fields, layers)]
    activation = fields.text("hidden_act", family.activation)
    if activation not in ACTIVATIONS:
        notes.append(f"activation {activation[:40]!r} is not known: read as {family.activation}")
    if fields.count_or("word_embed_proj_dim", hidden) != hidden:
        notes.append("embeddings narrower than the model (word_embed_proj_dim) are read as full width")
    return tuple(notes[:8])


def _position_rows(fields: Fields, family: Family) -> int:
    if family.position_rows is None:
        return 0
    return fields.count("max_position_embeddings", at_most=10**7) + family.position_rows


def _buffer_bytes(experts: Experts | None, routed: int) -> int:
    """fp32 router corrections, one per expert of every layer that routes."""
    return 4 * experts.count * routed if experts and experts.router_correction_buffer else 0
