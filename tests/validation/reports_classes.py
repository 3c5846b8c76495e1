"""The classes that reports are labelled with, in the product's words: which verdicts and which memory they mean."""

from __future__ import annotations

from collections.abc import Mapping

from advisor.types.answers import MemoryAnswer

DEPENDS = "depends"
STRADDLES = "straddles"

#: Report's verdict class → the verdicts of ours that say the same. ``depends``: what is tried or left open decides;
#: ``straddles``: the band has an end on each side of what is usable.
VERDICTS: Mapping[str, frozenset[str]] = {
    "fits": frozenset({"comfortable", "fits"}),
    "oom_gpu": frozenset({"does_not_fit", "tight"}),
    "oom_host": frozenset({"host does_not_fit", "host tight", "host needs_info"}),
    "infeasible": frozenset({"does_not_fit"}),
    "borderline": frozenset({"tight", STRADDLES, DEPENDS}),
    "conditional": frozenset({DEPENDS}),
    "data_dependent": frozenset({DEPENDS}),
    "invalid_config": frozenset({"invalid"}),
    "needs_more_info": frozenset({"needs_info", DEPENDS}),
}

#: Classes that are no verdict on one job: questions, phases and faults that an estimate does not judge.
NO_VERDICT: Mapping[str, str] = {
    "explain_or_plan": "asks for an explanation or a plan",
    "estimate_or_gpu_count": "asks how many GPUs",
    "oom_eval_or_save": "fails while it evaluates or saves",
    "version_bug": "a fault of one release",
}

#: Memory that an estimate does not count yet.
NOT_COUNTED: Mapping[str, str] = {
    "load_phase": "fails while it loads",
    "save_phase": "fails while it saves",
    "eval_phase": "fails while it evaluates",
    "rollout_engine": "the rollout engine's memory",
    "reference_or_teacher_model": "a second model",
    "precision_copies": "copies in fp8",
    "pinned_or_nvme_buffers": "staging buffers",
}

#: Report's dominating class → the group of our slots that it speaks of.
GROUPS: Mapping[str, str] = {
    "weights_grads_optimizer": "states",
    "weights_not_sharded": "states",
    "expert_weights_or_states": "states",
    "logits": "logits",
    "activations": "activations",
    "vision_activations": "activations",
    "gathered_params": "gathered",
}

#: What a class says beside its group.
BESIDE: Mapping[str, str] = {
    "weights_not_sharded": ", and no rank shares the weights",
    "expert_weights_or_states": ", at least half of it the experts'",
}

#: A group below this share of the peak dominates nothing.
NOTABLE = 0.25

#: The ZeRO stage that divides the weights among the ranks.
WEIGHTS_DIVIDED_FROM = 3

_PREFIXES: Mapping[str, str] = {
    "weights.": "states", "gradients.": "states", "optimizer.": "states", "adapters.": "states", "buckets.": "states",
    "loss.": "logits", "working.head": "logits", "gather.": "gathered",
}  # fmt: skip


def group_of(slot: str) -> str:
    """The group that a slot belongs to; what a layer keeps or makes is activations."""
    return next((group for prefix, group in _PREFIXES.items() if slot.startswith(prefix)), "activations")


def groups(answer: MemoryAnswer) -> dict[str, int]:
    """Bytes of each group at the peak, largest first."""
    totals: dict[str, int] = {}
    for term in answer.terms:
        totals[group_of(term.slot)] = totals.get(group_of(term.slot), 0) + term.bytes
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def dominating(answer: MemoryAnswer) -> tuple[str, ...]:
    """The groups that an answer puts first: the two largest, as far as they are notable."""
    largest = list(groups(answer).items())[:2]
    return tuple(group for group, size in largest if size >= NOTABLE * answer.peak_bytes)


def speaks_of(label: str, answer: MemoryAnswer, *, quantised: bool) -> bool:
    """Whether a report's dominating class is what our answer puts first; ZeRO leaves a quantised base whole."""
    if GROUPS.get(label) not in dominating(answer):
        return False
    if label == "weights_not_sharded":
        layout = answer.layout
        return layout.zero_stage < WEIGHTS_DIVIDED_FROM or layout.data_parallel_shard == 1 or quantised
    if label == "expert_weights_or_states":
        experts = sum(term.bytes for term in answer.terms if term.slot.endswith(".experts"))
        return 2 * experts >= groups(answer)["states"]
    return True
