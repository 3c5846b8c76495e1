"""How weights are loaded and checkpoints saved: who holds how much of them on the host.

A framework that does it itself decides; elsewhere a script does, and the usual way is assumed and said. Rows of the
glossary, as in ``rates``: name, meaning, unit, how it is read from a place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from advisor.catalog.frameworks import Ways, find_framework
from advisor.columnwise import Number, choose
from advisor.placement import Place
from advisor.types.case import Case, Layout
from advisor.types.columns import OFFLOAD_TARGETS

FP32 = 4  # bytes

#: The arguments, which are also what the catalog calls a framework's ways.
LOADING, SAVING = "weight_loading", "checkpoint_saving"


def ways(case: Case, argument: str) -> Mapping[int, str]:
    """How weights are loaded or checkpoints saved, by the ZeRO stage from which it holds: as given, else the framework's."""
    given: str | None = getattr(case.training, argument)
    if given is not None:
        return {0: given}
    if argument == LOADING and case.training.quantization != "none":
        return {0: "by_tensor"}  # a quantised weight is made on the GPU as soon as it is read
    return _ways(case, argument).by_stage


def way(case: Case, argument: str) -> str:
    """The way at the layout's ZeRO stage."""
    by_stage = ways(case, argument)
    return by_stage[max(stage for stage in by_stage if stage <= case.layout.zero_stage)]


def is_sure(case: Case, argument: str) -> bool:
    """Whether the way is given, or the framework's own rather than a script's."""
    return getattr(case.training, argument) is not None or _ways(case, argument).own


def _ways(case: Case, argument: str) -> Ways:
    found: Ways = getattr(find_framework(case.training.framework), argument)
    return found


# --- the glossary's rows --------------------------------------------------------------------------------------------


def _whole(place: Place) -> Place:
    """One rank that holds the whole model."""
    return Place(place.case, Layout())


def _saved_of_model(place: Place) -> Number:
    whole = _whole(place)
    return whole.case.adapter_parameters + _others(whole) if place.adapters else place.case.parameters.total


def _saved_of_stage(place: Place) -> Number:
    if place.adapters:
        return place.case.adapter_parameters * place.layers / place.model.layers + _others(place)
    return place.divided / place.layout.tensor_parallel + place.replicated


def _matrices(place: Place) -> Number:
    return place.divided_trained + place.experts_trained + place.case.adapter_parameters


def _others(place: Place) -> Number:
    return place.replicated_trained + place.head_trained + place.embedding_trained


def _weights_on_host(place: Place) -> Number:
    target: Any = place.layout.offload_parameters
    if isinstance(target, str):
        return 1 if target == "cpu" else 0
    return choose(target == OFFLOAD_TARGETS.index("cpu"), 1, 0)


def _replicas(place: Place) -> Number:
    return place.world / (place.layout.pipeline_parallel * place.layout.tensor_parallel)


ROWS: tuple[tuple[str, str, str, Callable[[Place], Number]], ...] = (
    ("R_n", "ranks on a node", "1", lambda p: p.case.cluster.gpus_per_node),
    ("D_d", "ranks that hold the same dense weights before ZeRO divides them", "1", _replicas),
    ("D_e", "ranks that hold the same experts before ZeRO divides them", "1", lambda p: p.expert_data_ranks),
    ("x_h", "1 where weights rest in CPU memory", "1", _weights_on_host),
    ("K_w", "parameters of the whole model", "param", lambda p: p.case.parameters.total),
    ("K_s", "parameters that a checkpoint holds: the whole model's, or what is trained beside a frozen base", "param", _saved_of_model),
    ("K_u", "those of them that no ZeRO stage divides", "param", lambda p: choose(p.layout.zero_stage >= p.case.training.recipe.weights_divided_from, 0, _saved_of_model(p))),
    ("K_d", "those of the stage outside routed experts, on one tensor-parallel rank", "param", _saved_of_stage),
    ("K_e", "those of the stage in routed experts", "param", lambda p: 0 if p.adapters else p.experts),
    ("K_m", "trained parameters of the whole model in matrices of its layers, or in adapters", "param", lambda p: _matrices(_whole(p))),
    ("K_o", "trained parameters of the whole model in embedding, head and norms", "param", lambda p: _others(_whole(p))),
    ("w_F", "bytes of a parameter in fp32", "B/param", lambda _: FP32),
    ("w_K", "bytes a weight is saved in", "B/param", lambda p: p.case.training.lora_bytes if p.adapters else p.case.training.recipe.weight_bytes),
)  # fmt: skip
