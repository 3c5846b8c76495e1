"""The names that advice may use beside the facts of a case: what an answer says, and what was given or meant.

Each is read from a finished answer when an expression first asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, get_args

from advisor.timing import step_time
from advisor.types import arguments as a
from advisor.types.answers import MemoryAnswer
from advisor.types.case import Case
from advisor.units import format_bytes, format_count

STATES: Final = ("weights", "gradients", "optimizer", "adapters")
FP32_BYTES: Final = 4
_NO_OFFLOAD: Final = {"offload_optimizer": "none", "offload_parameters": "none", "offload_activations": "none"}


@dataclass(frozen=True)
class AnswerFact:
    """One name: its meaning, how it is read, how a sentence shows it, and its words where it is a choice."""

    name: str
    meaning: str
    read: Callable[[Case, MemoryAnswer], Any]
    text: Callable[[Any], str] = str
    words: tuple[str, ...] = ()


def _at_peak(answer: MemoryAnswer, starts: tuple[str, ...]) -> int:
    return sum(term.bytes for term in answer.terms if term.slot.startswith(starts))


def _offloaded(case: Case, answer: MemoryAnswer) -> int:
    host = answer.host
    return (host.cpu_bytes_per_node + host.nvme_bytes_per_node) // case.cluster.gpus_per_node


def _slow_down(case: Case, answer: MemoryAnswer) -> float:
    """Times that the step takes as long as the same one without any offload."""
    resting = case.model_copy(update={"layout": case.layout.model_copy(update=_NO_OFFLOAD)})
    return (answer.time.step_time_s or 0.0) / step_time(resting).seconds


def _ratio(value: float) -> str:
    return f"{value:.2f}"


_ALL: Final = (
    AnswerFact("fits", "the expected peak fits", lambda _, x: x.verdict != "does_not_fit"),
    AnswerFact("peak", "bytes at the peak", lambda _, x: x.peak_bytes, format_bytes),
    AnswerFact("usable", "bytes that training may use", lambda _, x: x.usable_bytes, format_bytes),
    AnswerFact("margin", "bytes left free", lambda _, x: x.margin_bytes, format_bytes),
    AnswerFact("states", "bytes of weights, gradients and optimizer at the peak",
               lambda _, x: _at_peak(x, STATES), format_bytes),
    AnswerFact("scores", "bytes of attention scores at the peak",
               lambda _, x: _at_peak(x, ("attention.core", "activations.scores")), format_bytes),
    AnswerFact("saved_activations", "bytes that layers keep for the backward pass",
               lambda _, x: x.activations.saved_bytes, format_bytes),
    AnswerFact("loss_memory", "bytes of logits and their copies", lambda _, x: x.activations.loss_bytes, format_bytes),
    AnswerFact("offloaded", "bytes that a GPU sends to the host or to NVMe", _offloaded, format_bytes),
    AnswerFact("slow_down", "times that the step takes as long as without offload", _slow_down, _ratio),
    AnswerFact("precision_given", "the precision was given",
               lambda c, _: c.arguments is not None and c.arguments.precision is not None),
    AnswerFact("mixed_precision", "layers compute in less than 32 bits",
               lambda c, _: c.training.recipe.compute_bytes < FP32_BYTES),
    AnswerFact("longest_stage", "layers of the longest stage", lambda _, x: max(stage.layers for stage in x.stages)),
    AnswerFact("vision_parameters", "parameters of the image tower", lambda c, _: c.parameters.vision, format_count),
    AnswerFact("profile", "whose arithmetic it is", lambda c, _: c.policy.profile, words=get_args(a.Profile)),
)  # fmt: skip

ANSWER_FACTS: Final[Mapping[str, AnswerFact]] = MappingProxyType({fact.name: fact for fact in _ALL})
