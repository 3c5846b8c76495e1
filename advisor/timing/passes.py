"""How often a pipeline stage passes over its layers in one micro-batch.

A pass is one layer, forward; a backward pass counts two in matrices (inputs and weights), two and a half in attention
(the scores are made again), two element-wise. Recompute adds forward passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from advisor.columnwise import Number, at_most, pick
from advisor.layers import TrainedPart, running_sums
from advisor.placement import Place
from advisor.recompute import recomputed_layers
from advisor.types.architecture import ModelArchitecture


@dataclass(frozen=True)
class Passes:
    """Layers of one kind on a stage.

    Attributes:
        forward: all of them.
        inputs: those whose input needs a gradient.
        weights: those whose own weights are trained.
        again: those whose forward pass runs a second time as a whole.
    """

    forward: Number
    inputs: Number
    weights: Number
    again: Number

    @property
    def matrices(self) -> Number:
        """Passes over matrices."""
        return self.forward + self.inputs + self.weights + self.again

    @property
    def scores(self) -> Number:
        """Passes over the attention kernel."""
        return self.forward + self.inputs * 2.5 + self.again

    @property
    def twice(self) -> Number:
        """Passes of what a backward pass does twice: element-wise kernels, launches, context exchange."""
        return self.forward + 2 * self.inputs + self.again

    @property
    def once(self) -> Number:
        """Passes of what a backward pass does once: exchange between ranks."""
        return self.forward + self.inputs + self.again

    @property
    def partly(self) -> Number:
        """Layers of which a policy may recompute parts."""
        return self.inputs - self.again


@dataclass(frozen=True)
class _Sums:
    """Running sums over the layers of one kind."""

    forward: tuple[int, ...]
    inputs: tuple[int, ...]
    weights: tuple[int, ...]


@lru_cache(maxsize=256)
def _sums(model: ModelArchitecture, trained: TrainedPart, moe: bool) -> _Sums:
    kind = [(index in set(model.moe_layers)) == moe for index in range(model.layers)]
    return _Sums(
        running_sums(int(is_kind) for is_kind in kind),
        running_sums(int(is_kind and index >= trained.lowest) for index, is_kind in enumerate(kind)),
        running_sums(int(is_kind and index in trained.layers) for index, is_kind in enumerate(kind)),
    )


def passes(place: Place, *, moe: bool) -> Passes:
    """How often a stage passes over its dense or its expert layers for one micro-batch."""
    sums = _sums(place.model, place.trained, moe)
    first_kept = at_most(place.first_layer + recomputed_layers(place), place.end_layer)
    again = pick(sums.inputs, first_kept) - pick(sums.inputs, place.first_layer)
    forward = place.span(sums.forward)
    inputs, weights = (forward if table == sums.forward else place.span(table) for table in (sums.inputs, sums.weights))
    return Passes(forward, inputs, weights, again)
