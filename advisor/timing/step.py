"""Case → seconds of one optimizer step, formula by formula, on the pipeline stage that a step waits for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from advisor.methods import ADAPTER_METHODS
from advisor.placement import Place
from advisor.timing.job import Job
from advisor.timing.lines import Line
from advisor.timing.stage import StageTime, slowest_stage
from advisor.timing.work import attention_scores
from advisor.types.case import Case


@dataclass(frozen=True)
class Part:
    """One formula of a step.

    Attributes:
        name: the slot it fills, for example ``matrices.dense``.
        seconds: its time in one step, on one rank.
        formula: the expression.
        substituted: the expression with the case's numbers.
        source: where it comes from.
        hidden: it runs beside other parts and adds nothing to the step by itself.
    """

    name: str
    seconds: float
    formula: str
    substituted: str
    source: str
    hidden: bool


@dataclass(frozen=True)
class StepTime:
    """One optimizer step of a case."""

    job: Job
    slowest: StageTime

    @property
    def case(self) -> Case:
        """What is trained, and how."""
        return self.job.case

    @cached_property
    def seconds(self) -> float:
        """The whole step."""
        return float(self.slowest.seconds)

    @property
    def stage(self) -> int:
        """The pipeline stage that the step waits for."""
        return int(self.slowest.place.stage)

    @property
    def tokens(self) -> int:
        """Tokens of a step over all GPUs."""
        layout = self.case.layout
        samples = layout.micro_batch * layout.gradient_accumulation * layout.data_parallel
        return samples * self.case.training.sequence_length

    @property
    def tokens_per_s(self) -> float:
        """Tokens a second over all GPUs."""
        return self.tokens / self.seconds

    @property
    def tokens_per_s_per_gpu(self) -> float:
        """Tokens a second and GPU."""
        return self.tokens_per_s / self.case.layout.world

    @cached_property
    def flops_per_token(self) -> float:
        """Model FLOP of a token; scores are counted as far as the mask lets them be seen."""
        return _flops_per_token(self.job)

    @property
    def model_flops_per_s_per_gpu(self) -> float:
        """Model FLOP a second and GPU."""
        return self.tokens_per_s_per_gpu * self.flops_per_token

    @property
    def mfu(self) -> float:
        """Share of the datasheet's dense bf16 rate, with masked scores left out."""
        return self.model_flops_per_s_per_gpu / self.case.cluster.device.bf16_flops_per_s

    @property
    def mfu_whole_attention(self) -> float:
        """The same with scores against the whole sequence, as PaLM, Megatron-LM and llm-foundry count."""
        return self.mfu * _flops_per_token(self.job, whole_attention=True) / self.flops_per_token

    @property
    def mfu_6n(self) -> float:
        """The same with six FLOP for each parameter that a token reads, and none for scores."""
        return self.mfu * 6 * self.case.parameters.active / self.flops_per_token

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The formulas that add up to the step, largest first, then those that are hidden."""
        adding = [part for part in (_part(line, hidden=False) for line in self.slowest.lines) if part.seconds]
        hidden = [part for part in (_part(line, hidden=True) for line in self.slowest.hidden) if part.seconds]
        return tuple(sorted(adding, key=lambda part: -part.seconds)) + tuple(hidden)


def step_time(case: Case, places: Mapping[int, Place] | None = None) -> StepTime:
    """The time of one optimizer step, on the pipeline stage that it waits for.

    Args:
        case: the job.
        places: stages that were looked at before, so that nothing of them is read twice.
    """
    job = Job(case, case.layout, places=places or {})
    return StepTime(job, slowest_stage(job))


def _part(line: Line, *, hidden: bool) -> Part:
    term = line.term
    return Part(term.slot, float(line.seconds), term.formula, line.substituted, term.source, hidden)


def model_flops_per_token(case: Case, *, whole_attention: bool = False) -> float:
    """FLOP of a token in a forward and a backward pass, none made again; frozen weights have no gradient of their own.

    Args:
        case: the job.
        whole_attention: count scores against the whole sequence, as many publications do, not what a mask leaves.
    """
    return _flops_per_token(Job(case, case.layout), whole_attention=whole_attention)


def _flops_per_token(job: Job, *, whole_attention: bool = False) -> float:
    case, values = job.case, job.values
    layers, moe = case.model.layers, len(case.model.moe_layers)
    routed = values["k"] * values["F_e"] + values["F_s"] if moe else 0
    keys = case.training.sequence_length if whole_attention else values["n_k"]
    forward = (
        layers * (values["F_a"] + attention_scores.function(values["a"], values["d"], values["d_v"], keys))
        + (layers - moe) * values["F_f"]
        + moe * routed
        + values["F_v"]
    )
    return float(forward * (2 if case.training.method in ADAPTER_METHODS else 3))
