"""The letters that the articles' formulas read from a case: rounded sizes, even stages, expert parallel outside data.

Rows of the glossary, as in ``rates``: name, meaning, unit, how it is read from a place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from advisor.columnwise import Number, at_least, choose, rounded_up
from advisor.placement import Place
from advisor.types.columns import RECOMPUTE_POLICIES
from advisor.units import BILLION, gb

Row = tuple[str, str, str, Callable[[Place], Number]]

M3, MUST_KNOW, SIXTEEN_BYTES = "article-m3", "article-must-know", "article-16-bytes"
#: Where an article prints both parts of a model (article-m3 §7.2): parameters in routed experts, and the rest.
PRINTED_PARTS: Final[Mapping[str, tuple[int, int]]] = {"minimax-m3": (398 * BILLION, 30 * BILLION)}
_SIZE_IN_NAME: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)b(?![a-z])", re.IGNORECASE)


def article_parameters(place: Place) -> tuple[float, float]:
    """Parameters in routed experts and outside them, as an article counts: the size in the model's name."""
    model, exact = place.model, place.case.parameters
    if model.name in PRINTED_PARTS:
        return PRINTED_PARTS[model.name]
    size = _SIZE_IN_NAME.search(model.name)
    total = float(size[1]) * BILLION if size else float(exact.total)
    experts = total * exact.experts / exact.total
    return experts, total - experts


def _trained(place: Place) -> float:
    """Share of the parameters that is trained, read from the layers."""
    tables = place.tables
    kept, whole = (
        (tables.divided_trained, tables.divided) if tables.divided[-1] else (tables.experts_trained, tables.experts)
    )
    return float(kept[-1] / whole[-1])


def _ranks(place: Place, from_stage: int) -> Number:
    """Data-parallel ranks that share a state; expert parallel is a dimension of its own here."""
    shard = at_least(place.layout.data_parallel_shard / place.layout.expert_parallel, 1)
    return choose(place.layout.zero_stage >= from_stage, shard, 1)


def _policy(place: Place, name: str) -> Number:
    """1 where the layout recomputes by this policy."""
    policy = place.layout.recompute
    return choose(policy == (name if isinstance(policy, str) else RECOMPUTE_POLICIES.index(name)), 1, 0)


def _kept_whole(place: Place) -> Number:
    """Share of the layers kept whole: all, none, each k-th, or the root of their number."""
    every = getattr(place.layout, "recompute_every", place.case.layout.recompute_every)
    stage = place.model.layers / place.layout.pipeline_parallel
    some = _policy(place, "every_k") / every + _policy(place, "sqrt") * rounded_up(stage**0.5, 1) / stage
    return some + (1 - _policy(place, "every_k") - _policy(place, "sqrt") - _policy(place, "full"))


def _inputs_kept(place: Place) -> Number:
    """Share of the layers whose input alone is kept."""
    return (_policy(place, "every_k") + _policy(place, "full")) * (1 - _kept_whole(place))


def _adapters(place: Place) -> Number:
    """Four square projections a layer (article-m3 §9.2)."""
    return 8 * place.model.hidden * place.case.training.lora_rank * place.model.layers if place.adapters else 0


def _supposed(place: Place) -> int:
    """Must-know §Q11: buffers of 5 GB. 16-bytes §10: a context of 1 GB, and 0.3 GB of expert exchange."""
    if place.case.policy.profile == MUST_KNOW:
        return gb(5)
    return gb(1.3) if place.model.experts else gb(1)


ROWS: tuple[Row, ...] = (
    ("N", "parameters outside the routed experts, rounded as the model's name has them", "param", lambda p: article_parameters(p)[1]),
    ("N_e", "parameters of the routed experts, as an article rounds them", "param", lambda p: article_parameters(p)[0]),
    ("G", "trained parameters outside the routed experts, as an article rounds them", "param", lambda p: article_parameters(p)[1] * _trained(p)),
    ("G_x", "trained parameters of the routed experts, as an article rounds them", "param", lambda p: article_parameters(p)[0] * _trained(p)),
    ("N_l", "parameters of adapters on four square projections a layer", "param", _adapters),
    ("L", "layers", "1", lambda p: p.model.layers),
    ("rho", "share of the layers kept whole", "1", _kept_whole),
    ("kappa", "share of the layers whose input alone is kept", "1", _inputs_kept),
    ("z_1", "ranks that share the optimizer states, expert parallel outside data parallel", "1", lambda p: _ranks(p, 1)),
    ("z_2", "ranks that share the gradients, expert parallel outside data parallel", "1", lambda p: _ranks(p, 2)),
    ("z_3", "ranks that share the weights, expert parallel outside data parallel", "1", lambda p: _ranks(p, 3)),
    ("w_E", "optimizer bytes of an expert's parameter", "B/param", lambda p: p.case.training.recipe.master_bytes + p.case.training.optimizer.matrix_bytes),
    ("B_s", "bytes that an article adds without counting", "B", _supposed),
)  # fmt: skip
