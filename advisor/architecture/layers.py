"""Which layers do what: which route to experts, whose attention slides, which carry an indexer."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from advisor.architecture.families import Family
from advisor.architecture.fields import Fields

#: Kinds in layer_types whose attention holds the same parameters and the same saved tensors.
_ORDINARY_KINDS = frozenset({"full_attention", "sliding_attention", "chunked_attention", "minimax_m3_sparse"})


def routing_layers(fields: Fields, layers: int, family: Family) -> tuple[int, ...]:
    """Indices of the layers that route to experts, by whichever of the five customs the config follows.

    Raises:
        AdvisorError: a list of the wrong length, an index that is no layer, a stride below 1.
    """
    by_name = fields.items("mlp_layer_types", str, length=layers)
    if by_name is not None:
        return tuple(index for index, kind in enumerate(by_name) if kind == "sparse")
    given = fields.items("moe_layers", int)
    if given is not None:
        return _layer_indices(fields, "moe_layers", given, layers)
    marks = None if fields.data.get("moe_layer_freq") == 1 else fields.items("moe_layer_freq", int, length=layers)
    if marks is not None:
        return tuple(index for index, mark in enumerate(marks) if mark)
    return _strided(fields, layers, family)


def _strided(fields: Fields, layers: int, family: Family) -> tuple[int, ...]:
    """All layers, less the first dense ones, those between strides, and those named as dense."""
    stride_field = family.routing.stride if family.routing and family.routing.stride else "decoder_sparse_step"
    stride = fields.count_or(stride_field, 1, at_most=layers)
    first = fields.count_or("first_k_dense_replace", 0, at_least=0, at_most=layers)
    dense = set(_layer_indices(fields, "mlp_only_layers", fields.items("mlp_only_layers", int) or (), layers))
    return tuple(i for i in range(first, layers) if (i + 1) % stride == 0 and i not in dense)


def _layer_indices(fields: Fields, name: str, indices: tuple[int, ...], layers: int) -> tuple[int, ...]:
    for index in indices:
        if not 0 <= index < layers:
            raise fields.refuse(name, index, f"indices of layers, 0 to {layers - 1}")
    return tuple(sorted(set(indices)))


def sliding_layers(fields: Fields, layers: int, family: Family) -> tuple[int, ...]:
    """Indices of the layers that see only the last ``sliding_window`` tokens."""
    if not fields.has("sliding_window"):
        return ()
    kinds = fields.items("layer_types", str, length=layers)
    if kinds is not None:
        return tuple(index for index, kind in enumerate(kinds) if kind == "sliding_attention")
    return tuple(index for index in range(layers) if _SLIDES[family.sliding](fields, index))


def _past_full_layers(fields: Fields, index: int) -> bool:
    used = fields.flag("use_sliding_window", absent=False)
    return used and index >= int(fields.count_or("max_window_layers", 28, at_least=0))


_SLIDES: Mapping[str, Callable[[Fields, int], bool]] = {
    "none": lambda _fields, _index: False,
    "all": lambda _fields, _index: True,
    "even": lambda _fields, index: index % 2 == 0,
    "pattern": lambda fields, index: (index + 1) % int(fields.count("sliding_window_pattern")) != 0,
    "upper": _past_full_layers,
}


def indexed_layers(fields: Fields, layers: int) -> tuple[int, ...]:
    """Indices of the layers whose attention chooses key blocks with an indexer (MiniMax-M3)."""
    kinds = fields.items("layer_types", str, length=layers)
    if kinds is not None:
        return tuple(index for index, kind in enumerate(kinds) if kind == "minimax_m3_sparse")
    sparse = fields.inside("sparse_attention_config")
    marks = sparse.items("sparse_attention_freq", int, length=layers) if sparse else None
    return tuple(index for index, mark in enumerate(marks or ()) if mark)


def unusual_kinds(fields: Fields, layers: int) -> tuple[str, ...]:
    """Kinds in layer_types that are not softmax attention (linear attention, state space …)."""
    return tuple(sorted(set(fields.items("layer_types", str, length=layers) or ()) - _ORDINARY_KINDS))
