"""Image encoders and their projectors: counted exactly for the towers that the known families use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from advisor.architecture.fields import Fields
from advisor.types import VisionTower


@dataclass(frozen=True)
class _Size:
    """Elements of a part of the tower: matrices and tables, normalisation vectors, bias vectors."""

    matrices: int = 0
    norms: int = 0
    biases: int = 0

    def __add__(self, other: _Size) -> _Size:
        return _Size(self.matrices + other.matrices, self.norms + other.norms, self.biases + other.biases)

    def times(self, count: int) -> _Size:
        return _Size(self.matrices * count, self.norms * count, self.biases * count)

    @property
    def total(self) -> int:
        return self.matrices + self.norms + self.biases


@dataclass(frozen=True)
class _Shape:
    """The fields that every tower has, whatever it calls them."""

    hidden: int
    layers: int
    heads: int
    ffn: int
    patch: int
    image: int
    patch_inputs: int

    @property
    def patches(self) -> int:
        """Patches of one image at full size."""
        return (self.image // self.patch) ** 2

    def tower(self, *, size: _Size, projector: _Size, gated: bool = False, tokens: int = 0) -> VisionTower:
        """The finished value, from what was counted."""
        both = size + projector
        return VisionTower(
            hidden=self.hidden, layers=self.layers, heads=self.heads, ffn_hidden=self.ffn, gated_ffn=gated,
            patch_size=self.patch, image_size=self.image, tokens_per_image=tokens, parameters=both.total,
            projector_parameters=projector.total, norms=both.norms, biases=both.biases,
        )  # fmt: skip


def _linear(inputs: int, outputs: int, *, bias: bool = True) -> _Size:
    return _Size(matrices=inputs * outputs, biases=outputs if bias else 0)


def _layernorm(width: int, count: int = 1) -> _Size:
    return _Size(norms=2 * width * count)


def _plain_block(shape: _Shape) -> _Size:
    """A transformer block with biases everywhere, two layer norms and an ungated feed-forward."""
    attention = _linear(shape.hidden, shape.hidden).times(4)
    return (
        attention
        + _layernorm(shape.hidden, 2)
        + _linear(shape.hidden, shape.ffn)
        + _linear(shape.ffn, shape.hidden)
    )  # fmt: skip


def _pooling_head(shape: _Shape) -> _Size:
    """SigLIP's attention pooling: a learned query, one attention, a norm and a feed-forward."""
    feed_forward = _linear(shape.hidden, shape.ffn) + _linear(shape.ffn, shape.hidden)
    attention = _linear(shape.hidden, shape.hidden).times(4)
    return _Size(matrices=shape.hidden) + attention + _layernorm(shape.hidden) + feed_forward


def _siglip(vision: Fields, top: Fields, text_hidden: int) -> VisionTower:
    shape = _shape(vision)
    stem = _linear(shape.patch_inputs, shape.hidden) + _Size(matrices=shape.patches * shape.hidden)
    size = stem + _plain_block(shape).times(shape.layers) + _layernorm(shape.hidden)
    if vision.flag("vision_use_head", absent=True):
        size += _pooling_head(shape)
    projector = _linear(shape.hidden, text_hidden, bias=False) + _Size(norms=shape.hidden)
    return shape.tower(size=size, projector=projector, tokens=top.count_or("mm_tokens_per_image", 256))


def _qwen_window(vision: Fields, _top: Fields, text_hidden: int) -> VisionTower:
    shape = _shape(vision)
    merged = shape.hidden * vision.count_or("spatial_merge_size", 2, at_most=64) ** 2
    block = (
        _linear(shape.hidden, shape.hidden).times(4)
        + _Size(norms=2 * shape.hidden)
        + _linear(shape.hidden, shape.ffn).times(2)
        + _linear(shape.ffn, shape.hidden)
    )
    patches = _linear(shape.patch_inputs * vision.count_or("temporal_patch_size", 2), shape.hidden, bias=False)
    merger = _Size(norms=shape.hidden) + _linear(merged, merged) + _linear(merged, text_hidden)
    return shape.tower(size=patches + block.times(shape.layers), projector=merger, gated=True)


def _llama4(vision: Fields, _top: Fields, text_hidden: int) -> VisionTower:
    shape = _shape(vision)
    output, inner = vision.count("vision_output_dim"), vision.count("projector_input_dim")
    stem = _linear(shape.patch_inputs, shape.hidden, bias=False) + _Size(matrices=(shape.patches + 2) * shape.hidden)
    adapter = _linear(shape.ffn, inner, bias=False) + _linear(inner, vision.count("projector_output_dim"), bias=False)
    size = stem + _layernorm(shape.hidden, 2) + _plain_block(shape).times(shape.layers) + adapter
    ratio = vision.share("pixel_shuffle_ratio", 0.5)
    tokens = round(shape.patches * ratio**2)
    return shape.tower(size=size, projector=_linear(output, text_hidden, bias=False), tokens=tokens)


def _minimax(vision: Fields, top: Fields, text_hidden: int) -> VisionTower:
    shape = _shape(vision)
    inner = top.count_or("projector_hidden_size", text_hidden)
    merged = text_hidden * vision.count_or("spatial_merge_size", 2, at_most=64) ** 2
    patches = _linear(shape.patch_inputs * vision.count_or("temporal_patch_size", 2), shape.hidden, bias=False)
    size = patches + _layernorm(shape.hidden) + _plain_block(shape).times(shape.layers)
    project = _linear(shape.hidden, inner) + _linear(inner, text_hidden)
    merge = _linear(merged, inner) + _linear(inner, text_hidden)
    return shape.tower(size=size, projector=project + merge, tokens=top.count_or("image_seq_length", 0))


def _pixtral(vision: Fields, top: Fields, text_hidden: int) -> VisionTower:
    shape = _shape(vision)
    block = (
        _linear(shape.hidden, shape.hidden, bias=False).times(4)
        + _Size(norms=2 * shape.hidden)
        + _linear(shape.hidden, shape.ffn, bias=False).times(3)
    )
    stem = _linear(shape.patch_inputs, shape.hidden, bias=False) + _Size(norms=shape.hidden)
    merged = shape.hidden * top.count_or("spatial_merge_size", 2, at_most=64) ** 2
    bias = top.flag("multimodal_projector_bias", absent=False)
    projector = (
        _Size(norms=shape.hidden)
        + _linear(merged, shape.hidden, bias=False)
        + _linear(shape.hidden, text_hidden, bias=bias)
        + _linear(text_hidden, text_hidden, bias=bias)
    )
    return shape.tower(size=stem + block.times(shape.layers), projector=projector, gated=True)


#: model_type of the whole model -> how its tower is counted.
_TOWERS: Mapping[str, Callable[[Fields, Fields, int], VisionTower]] = {
    "gemma3": _siglip,
    "qwen2_5_vl": _qwen_window,
    "llama4": _llama4,
    "minimax_m3_vl": _minimax,
    "mistral3": _pixtral,
}


def read_vision(top: Fields, model_type: str, text_hidden: int) -> VisionTower | None:
    """The tower in ``vision_config``; None when there is none, or none that can be counted.

    Raises:
        AdvisorError: a known tower's field is absent or out of bounds.
    """
    vision = top.inside("vision_config")
    if vision is None or model_type not in _TOWERS:
        return None
    return _TOWERS[model_type](vision, top, text_hidden)


def _shape(vision: Fields) -> _Shape:
    layers = "depth" if vision.has("depth") else "num_hidden_layers"
    patch = vision.count("patch_size", at_most=1024)
    return _Shape(
        hidden=vision.count("hidden_size", at_most=10**6),
        layers=vision.count(layers, at_most=4096),
        heads=vision.count("num_attention_heads", at_most=10**5),
        ffn=vision.count("intermediate_size", at_most=10**7),
        patch=patch,
        image=vision.count_or("image_size", 0, at_least=0, at_most=10**6),
        patch_inputs=vision.count_or("num_channels", 3, at_most=64) * patch**2,
    )
