"""What an expert would require of a recommendation, as checks; docs/recommendations.md shows them on eight jobs.

A check's docstring is its row on the page. It judges the answer alone, or asks the product again with a lever held.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Final

import advisor
from advisor.constraints.rulebook import law
from advisor.resolve import resolve
from advisor.types import CaseArguments, Layout, SetupAnswer
from advisor.types.case import Case
from advisor.units import format_bytes
from advisor.words.phrases import VERDICTS, layout_words

RUNGS: Final = [rung.id for rung in law().ladder.rungs]
OFFLOADS: Final = ("offload_optimizer", "offload_activations", "offload_parameters")
NO_OFFLOAD: Final = dict.fromkeys(OFFLOADS, "none")
#: What the other arguments leave over: no lever that could want a reason.
LEFT_OVER: Final = {"gradient_accumulation", "data_parallel_shard"}
LONG, VERY_LONG, SHORTEST_SHARE = 8_192, 32_768, 4_096
MICRO_BATCHES_A_STAGE = 4
WIDEST_IN_A_MIXTURE = 4
MUCH_CHEAPER = 1.10


@dataclass(frozen=True, eq=False)
class Job:
    """A job that people run, and what the product answers.

    Attributes:
        title: model, kind of training and hardware, for a heading.
        arguments: the call.
    """

    title: str
    arguments: dict[str, Any]

    @cached_property
    def answer(self) -> SetupAnswer:
        """The recommendation."""
        return advisor.recommend_setup(**self.arguments)

    @cached_property
    def case(self) -> Case:
        """The job as it is understood, before a layout is looked for."""
        return resolve(CaseArguments(**self.arguments, framework=self.answer.framework), allow_paths=False)

    @property
    def layout(self) -> Layout:
        """The recommended layout."""
        return self.answer.layout

    def asked_with(self, **levers: Any) -> SetupAnswer:
        """The recommendation when some levers are held."""
        return advisor.recommend_setup(**self.arguments, **levers)


@dataclass(frozen=True)
class Finding:
    """What a check says of a job: that it passes, or that the answer differs, and the reason."""

    passes: bool
    because: str


#: Step times closer than this are as good as equal for a mixture (rules/rungs.yaml).
TIES = law().ladder.tie_band.moe

#: A check; it returns None where its question does not come up.
Check = Callable[[Job], Finding | None]

H100 = "H100-80GB"
JOBS: Final = (
    Job("Llama-3-8B, full, one H100", {"model": "llama-3-8b", "hardware": f"1x1 {H100}", "method": "full"}),
    Job("Llama-3-8B, LoRA, one H100", {"model": "llama-3-8b", "hardware": f"1x1 {H100}", "method": "lora"}),
    Job(
        "Llama-3-70B, 8k, 4x8 H100",
        {"model": "llama-3-70b", "hardware": f"4x8 {H100}", "sequence_length": "8k"},
    ),
    Job("Qwen3-30B-A3B, 1x8 H100", {"model": "qwen3-30b-a3b", "hardware": f"1x8 {H100}"}),
    Job("DeepSeek-V3, 64x8 H800", {"model": "deepseek-v3", "hardware": "64x8 H800-80GB"}),
    *(
        Job(
            f"MiniMax M3, {length}, 64x8 H100",
            {"model": "minimax-m3", "hardware": f"64x8 {H100}", "sequence_length": length},
        )
        for length in ("8k", "128k", "1M")
    ),
)


# --- checks ---------------------------------------------------------------------------------------------------------


def unless_worse(job: Job, holds: bool, because: str, **instead: int) -> Finding:
    """A rule of thumb that may be left where following it is worse: the product is asked again with it followed."""
    if holds:
        return Finding(True, because)
    followed = job.asked_with(**instead)
    named = ", ".join(f"{name}={value}" for name, value in instead.items())
    if RUNGS.index(followed.rung) > RUNGS.index(job.answer.rung):
        return Finding(True, f"differs: {because}, for with {named} it fits only at {followed.rung}")
    longer = followed.estimate.time.tokens_per_s and job.answer.estimate.time.tokens_per_s
    share = job.answer.estimate.time.tokens_per_s / followed.estimate.time.tokens_per_s - 1 if longer else 0
    return Finding(share > TIES, f"differs: {because}; with {named} a step takes {share:.0%} longer")


def headroom(job: Job) -> Finding | None:
    """It fits with the headroom left free"""
    memory = job.answer.estimate
    room = (1 - job.case.policy.headroom) * memory.usable_bytes
    reserved, usable = format_bytes(memory.reserved_bytes), format_bytes(memory.usable_bytes)
    return Finding(memory.reserved_bytes <= room, f"{reserved} reserved of {usable}")


def every_gpu_works(job: Job) -> Finding | None:
    """The degrees multiply to all GPUs"""
    return Finding(job.layout.world == job.case.cluster.gpus, f"{job.layout.world:,} of {job.case.cluster.gpus:,}")


def tensor_parallel_on_the_fast_link(job: Job) -> Finding | None:
    """Tensor parallel stays inside the NVLink domain"""
    if job.layout.tensor_parallel == 1:
        return None
    domain = job.case.cluster.fast_domain
    return Finding(job.layout.tensor_parallel <= domain, f"{job.layout.tensor_parallel} of the {domain} on a fast link")


def whole_key_value_heads(job: Job) -> Finding | None:
    """Tensor parallel copies no key-value head"""
    tensor, heads = job.layout.tensor_parallel, job.case.model.attention.kv_heads
    if tensor == 1:
        return None
    return unless_worse(job, heads % tensor == 0, f"{heads} heads over {tensor} ranks", tensor_parallel=heads)


def tensor_parallel_by_active_parameters(job: Job) -> Finding | None:
    """A mixture of experts, whose active parameters are few, takes tensor parallel of four at most"""
    if job.case.model.experts is None:
        return None
    tensor = job.layout.tensor_parallel
    because = f"tensor_parallel={tensor}"
    return unless_worse(job, tensor <= WIDEST_IN_A_MIXTURE, because, tensor_parallel=WIDEST_IN_A_MIXTURE)


def sequence_parallel_with_tensor_parallel(job: Job) -> Finding | None:
    """Sequence parallel goes with tensor parallel"""
    if job.layout.tensor_parallel == 1:
        return None
    return Finding(job.layout.sequence_parallel, f"sequence_parallel={job.layout.sequence_parallel}".lower())


def experts_spread_before_cut(job: Job) -> Finding | None:
    """Experts are spread (EP) before they are cut (TP)"""
    layout = job.layout
    if job.case.model.experts is None:
        return None
    degrees = f"expert_parallel={layout.expert_parallel}, expert_tensor_parallel={layout.expert_tensor_parallel}"
    return Finding(layout.expert_parallel > 1 and layout.expert_tensor_parallel == 1, degrees)


def experts_on_the_fast_link(job: Job) -> Finding | None:
    """Experts' tokens stay inside the NVLink domain"""
    if job.case.model.experts is None:
        return None
    ranks, domain = job.layout.expert_parallel * job.layout.expert_tensor_parallel, job.case.cluster.fast_domain
    return unless_worse(job, ranks <= domain, f"{ranks} ranks, {domain} on a fast link", expert_parallel=domain)


def context_parallel_where_the_sequence_asks(job: Job) -> Finding | None:
    """Context parallel for long sequences only, and never into short pieces"""
    if job.case.cluster.gpus == 1:
        return None
    tokens, ranks = job.case.training.sequence_length, job.layout.context_parallel
    wanted = ranks == 1 if tokens < LONG else ranks > 1 or tokens < VERY_LONG
    return Finding(wanted and (ranks == 1 or tokens // ranks >= SHORTEST_SHARE), f"{tokens:,} tokens over {ranks}")


def optimizer_states_shared(job: Job) -> Finding | None:
    """Ranks that see other samples share the optimizer states (ZeRO-1 or more)"""
    ranks = job.layout.data_parallel_shard * job.layout.context_parallel
    return None if ranks == 1 else Finding(job.layout.zero_stage >= 1, f"stage {job.layout.zero_stage}, {ranks} ranks")


def no_gathering_in_a_pipeline(job: Job) -> Finding | None:
    """Beside a pipeline, ZeRO-1 at most"""
    if job.layout.pipeline_parallel == 1:
        return None
    return Finding(job.layout.zero_stage <= 1, f"stage {job.layout.zero_stage}")


def micro_batches_fill_the_pipeline(job: Job) -> Finding | None:
    """A pipeline has at least four micro-batches a stage"""
    stages, micro_batches = job.layout.pipeline_parallel, job.layout.gradient_accumulation
    if stages == 1:
        return None
    return Finding(micro_batches >= MICRO_BATCHES_A_STAGE * stages, f"{micro_batches:,} for {stages} stages")


def no_pipeline_inside_one_node(job: Job) -> Finding | None:
    """Inside one node a pipeline only where doing without is worse"""
    if job.case.cluster.nodes > 1 or job.case.cluster.gpus == 1:
        return None
    stages = job.layout.pipeline_parallel
    return unless_worse(job, stages == 1, f"pipeline_parallel={stages}", pipeline_parallel=1)


def recompute_after_sharding(job: Job) -> Finding | None:
    """Whole layers are recomputed only where sharding alone does not fit, or is a tenth costlier"""
    if job.layout.recompute in ("none", "near_free"):
        return None
    sharded = [other for other in job.answer.alternatives if other.rung == RUNGS[0] and other.fits]
    cost = min((other.cost for other in sharded), default=None)
    because = "sharding alone does not fit" if cost is None else f"sharding alone costs {cost:.2f} times as much"
    return Finding(cost is None or cost > MUCH_CHEAPER, because)


def offload_last(job: Job) -> Finding | None:
    """The host's memory is used only where sharding and recompute do not fit"""
    if not offloaded(job.layout):
        return None
    without = job.asked_with(**NO_OFFLOAD)
    return Finding(without.verdict == "does_not_fit", f"without offload: {without.verdict}".replace("_", " "))


def optimizer_offloaded_first(job: Job) -> Finding | None:
    """Of what can be offloaded, the optimizer goes first"""
    gone = offloaded(job.layout)
    return Finding(gone[0] == OFFLOADS[0], f"offloaded: {', '.join(gone)}") if gone else None


def every_lever_has_its_reason(job: Job) -> Finding | None:
    """No lever without a step that gives its reason"""
    used = {word.split("=")[0] for word in layout_words(job.layout).split() if "=" in word} - LEFT_OVER
    told = {step.id for step in job.answer.steps if step.because and step.sources}
    explained = {lever for rule in law().steps if rule.id in told for lever in rule.levers}
    missing = used - explained
    return Finding(not missing, f"no step on {', '.join(sorted(missing))}" if missing else f"{len(used)} levers")


def warned_beyond_the_models_length(job: Job) -> Finding | None:
    """A sequence beyond the model's own length is warned about, and no other"""
    tokens, longest = job.case.training.sequence_length, job.case.model.max_positions
    warned = any("beyond" in warning for warning in job.answer.warnings)
    return Finding(warned == (tokens > longest), f"{tokens:,} of {longest:,} positions")


def offloaded(layout: Layout) -> list[str]:
    """What the layout keeps in the host's memory or on NVMe."""
    return [name for name in OFFLOADS if getattr(layout, name) != "none"]


CHECKS: Final[tuple[Check, ...]] = (
    headroom,
    every_gpu_works,
    tensor_parallel_on_the_fast_link,
    whole_key_value_heads,
    tensor_parallel_by_active_parameters,
    sequence_parallel_with_tensor_parallel,
    experts_spread_before_cut,
    experts_on_the_fast_link,
    context_parallel_where_the_sequence_asks,
    optimizer_states_shared,
    no_gathering_in_a_pipeline,
    micro_batches_fill_the_pipeline,
    no_pipeline_inside_one_node,
    recompute_after_sharding,
    offload_last,
    optimizer_offloaded_first,
    every_lever_has_its_reason,
    warned_beyond_the_models_length,
)


# --- the page -------------------------------------------------------------------------------------------------------


def page_of_jobs() -> str:
    """All jobs as the generated part of docs/recommendations.md: a table, then a section each."""
    table = ["| job | verdict | framework, rung | peak | checks passed |", "|---|---|---|---|---|", *map(row_of, JOBS)]
    return "\n\n".join("\n".join(block) for block in [table, *map(section_of, JOBS)])


def row_of(job: Job) -> str:
    """One job in a line."""
    answer, found = job.answer, [finding for finding in findings(job).values() if finding]
    peak, passed = format_bytes(answer.estimate.peak_bytes), sum(finding.passes for finding in found)
    verdict = answer.verdict.replace("_", " ")
    return f"| {job.title} | {verdict} | {answer.framework}, {answer.rung} | {peak} | {passed} of {len(found)} |"


@cache
def findings(job: Job) -> dict[str, Finding | None]:
    """What every check finds, by the check's sentence."""
    return {check.__doc__ or "": check(job) for check in CHECKS}


def section_of(job: Job) -> Iterator[str]:
    """One job: what was asked, what is answered, how it was reached, what the checks find."""
    answer, memory = job.answer, job.answer.estimate
    asked = " ".join(f"--{name.replace('_', '-')} {shlex.quote(value)}" for name, value in job.arguments.items())
    peak, usable = format_bytes(memory.peak_bytes), format_bytes(memory.usable_bytes)
    yield f"## {job.title}\n\n`trainfit recommend-setup {asked}`\n"
    yield f"**{VERDICTS[answer.verdict]}.** {answer.framework}, {answer.rung}, peak {peak} of {usable} usable.\n"
    yield f"`{layout_words(job.layout)}`\n\n| step | from → to | peak |\n|---|---|---|"
    for step in answer.steps:
        moved = f"{step.from_} → {step.to}" if step.lever else ""
        yield f"| {step.id} | {moved} | {format_bytes(step.before)} → {format_bytes(step.after)} |"
    yield "\n| an expert requires | finding |\n|---|---|"
    for sentence, finding in findings(job).items():
        if finding:
            yield f"| {sentence} | {'pass' if finding.passes else 'differs'}: {finding.because} |"
