"""The size of one failed allocation → the tensor that it was: few tensors of a job have the same size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.placement import Place
from advisor.types.case import Case

#: A size is printed with a few digits, and a batch is padded: nearer than this is the same tensor.
SAME = 0.02

#: Bytes of an element that tensors are made in.
WIDTHS = (2, 4)


@dataclass(frozen=True)
class Tensor:
    """One tensor that a job of this case can ask for at once.

    Attributes:
        name: what it is, in our terms' words.
        meaning: what it holds, in a few words.
        elements: how many elements one rank holds of it.
        follows_tokens: whether it grows with the tokens of the micro-batch, which a user may not know.
    """

    name: str
    meaning: str
    elements: float
    follows_tokens: bool = False


@dataclass(frozen=True)
class Candidate:
    """A tensor that an allocation may have been.

    Attributes:
        tensor: the tensor.
        width: bytes of one element.
        share: the allocation over the tensor's size in this case.
        tokens: tokens of the micro-batch that the size speaks of; 0 where the tensor does not follow them.
    """

    tensor: Tensor
    width: int
    share: float
    tokens: int

    @property
    def exact(self) -> bool:
        """Whether the size is the tensor's own in this case."""
        return abs(self.share - 1) <= SAME


def decode_allocation(case: Case, size: int) -> tuple[Candidate, ...]:
    """The tensors of a case that an allocation of ``size`` bytes may have been, the likeliest first.

    A tensor of exactly that size comes before one that would need more tokens than the case has; a tensor that would
    need another model or fewer tokens is no candidate.
    """
    found = {
        (candidate.tensor.name, candidate.width): candidate
        for stage in range(case.layout.pipeline_parallel)
        for candidate in _candidates(Place(case, case.layout, stage), size)
    }
    return tuple(sorted(found.values(), key=lambda candidate: (not candidate.exact, abs(candidate.share - 1))))


def _candidates(place: Place, size: int) -> Iterator[Candidate]:
    for tensor in tensors(place):
        for width in WIDTHS:
            share = size / (tensor.elements * width)
            candidate = Candidate(tensor, width, share, round(place.tokens * share) if tensor.follows_tokens else 0)
            if candidate.exact or (tensor.follows_tokens and share > 1):
                yield candidate


def tensors(place: Place) -> tuple[Tensor, ...]:
    """The single tensors of a rank that are large enough to fail."""
    model, layout, training = place.model, place.layout, place.case.training
    experts = place.experts / (layout.expert_parallel * layout.expert_tensor_parallel)
    weights = place.divided / layout.tensor_parallel + place.replicated
    heads = model.attention.heads / layout.tensor_parallel
    scores = heads * place.tokens * training.sequence_length if training.attention == "eager" else 0
    all_of = (
        Tensor("loss.logits", "one copy of the logits", place.tokens * model.vocab / layout.tensor_parallel, True),
        Tensor("attention.scores", "the scores of one layer's attention", scores),
        Tensor("weights.table", "the embedding or head", model.vocab * model.hidden / layout.tensor_parallel),
        Tensor("gather.layer", "one layer's whole weights", place.unit),
        Tensor("weights.experts", "the rank's expert weights, or their gradient", experts),
        Tensor("gradients.flat", "the rank's weights or gradients in one piece", weights + experts),
        Tensor("optimizer.shard", "the rank's share of a flat state", (weights + experts) / place.shard_ranks),
        Tensor("optimizer.largest", "the state of the largest tensor", place.largest_tensor),
    )
    return tuple(tensor for tensor in all_of if tensor.elements)
