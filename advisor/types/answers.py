"""What the tools answer. All figures are bytes (int) and seconds; text formats GiB in one place (words.py)."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from advisor.types.architecture import ParameterCount
from advisor.types.base import Value
from advisor.types.case import Assumption, Layout
from advisor.types.host import Host, Verdict, worst

Evidence = Literal["verified", "known", "assumed"]


class SymbolValue(Value):
    """A letter in a formula: meaning, unit and value in this case."""

    symbol: str
    meaning: str
    unit: str
    value: float


class TermValue(Value):
    """One line of the breakdown, on the rank and stage that binds."""

    name: str
    slot: str
    bytes: int
    formula: str
    substituted: str
    symbols: tuple[str, ...]
    source: str
    phases: tuple[str, ...]
    evidence: Literal["derived", "code"] = Field(
        default="code", description="derived: from a paper or algebra; code: read in a library's source or counted"
    )


class PhaseValue(Value):
    """Memory alive in one phase of a step on the binding stage."""

    phase: str
    bytes: int


class StageValue(Value):
    """One pipeline stage, or a run of equal ones."""

    stage: int
    layers: int
    in_flight: float = Field(description="micro-batches whose activations are alive")
    parameters: int = Field(description="parameters one rank of the stage holds before ZeRO divides them")
    peak_bytes: int
    phase: str


class Binding(Value):
    """What decides the peak."""

    stage: int
    phase: str
    term: str


class Activations(Value):
    """Activation memory of the binding stage."""

    saved_bytes: int
    loss_bytes: int
    working_set_bytes: int
    per_layer_bytes: int


class Parameters(Value):
    """Parameter counts of the job."""

    total: int
    trainable: int
    active: int
    per_rank: int


class TimePart(Value):
    """One formula of a step's time."""

    name: str
    seconds: float
    hidden: bool = Field(description="runs beside other parts and adds nothing to the step by itself")
    formula: str
    substituted: str
    source: str


class Time(Value):
    """Speed of the layout."""

    step_time_s: float | None = Field(default=None, description="one optimizer step")
    tokens_per_s: float | None = Field(default=None, description="all GPUs together")
    tokens_per_s_per_gpu: float | None = None
    model_flops_per_s_per_gpu: float | None = Field(default=None, description="FLOP of the model, none made again")
    mfu: float | None = Field(default=None, description="share of the datasheet's bf16 rate; see mfu_convention")
    mfu_convention: str = ""
    mfu_whole_attention: float | None = Field(default=None, description="scores counted against the whole sequence")
    mfu_6n: float | None = Field(default=None, description="6 FLOP a parameter that a token reads, no scores")
    days: float | None = Field(default=None, description="for train_tokens")
    gpu_hours: float | None = Field(default=None, description="for train_tokens")
    cost: float | None = Field(default=None, description="GPU hours times price_per_gpu_hour")
    parts: tuple[TimePart, ...] = Field(
        default=(), description="at detail=full: formulas that add up to the step, then hidden ones"
    )
    note: str = ""


class NextCall(Value):
    """A complete call that would answer the obvious next question."""

    tool: str
    arguments: dict[str, Any]
    why: str


class MemoryAnswer(Value):
    """The answer of ``estimate_memory``."""

    verdict: Verdict = Field(description="of the GPU; host.verdict is the node's, and the worse of both decides")
    peak_bytes: int = Field(description="expected peak of allocated memory on the worst rank")
    peak_bytes_low: int
    peak_bytes_high: int
    reserved_bytes: int = Field(description="expected peak that the allocator reserves")
    usable_bytes: int = Field(description="driver's total less context, NCCL and other memory outside PyTorch")
    margin_bytes: int = Field(description="usable less reserved; negative when it does not fit")
    evidence: Evidence
    binding: Binding
    terms: tuple[TermValue, ...]
    symbols: tuple[SymbolValue, ...]
    activations: Activations
    stages: tuple[StageValue, ...]
    phases: tuple[PhaseValue, ...]
    parameters: Parameters
    host: Host
    time: Time
    layout: Layout
    framework: str = Field(description="the one given, or inferred from the other arguments")
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    questions: tuple[str, ...] = Field(default=(), description="arguments to give for a surer answer")
    next_calls: tuple[NextCall, ...]
    versions: dict[str, str]

    @property
    def decisive_verdict(self) -> Verdict:
        """The worse of the GPU's verdict and the node's."""
        return worst((self.verdict, self.host.verdict))


class Comparison(Value):
    """A check with both sides: how close it was."""

    what: str
    left: float
    operator: Literal["<=", "<", ">=", ">", "=="]
    right: float
    unit: str
    holds: bool


class Step(Value):
    """One lever on the way from plain data parallelism to the recommended layout."""

    id: str = Field(description="the rule that the step follows")
    question: str
    lever: str
    from_: str = Field(alias="from", serialization_alias="from", description="the lever's value before")
    to: str
    before: int = Field(description="peak bytes before")
    after: int = Field(description="peak bytes after")
    before_terms: dict[str, int] = Field(default_factory=dict, description="bytes by slot before")
    after_terms: dict[str, int] = Field(default_factory=dict, description="bytes by slot after")
    share_of_step: float | None = None
    because: str
    why_not_less: str
    why_not_more: str
    comparisons: tuple[Comparison, ...] = ()
    sources: tuple[str, ...] = ()


class Alternative(Value):
    """Another layout, with what it would cost."""

    framework: str
    layout: Layout
    rung: str
    peak_bytes: int
    fits: bool | None = Field(description="null: it leans on what the node has, and that is unknown")
    cost: float = Field(description="relative cost; the winner is 1.0")
    why: str


class Suggestion(Value):
    """A change to the training itself: verified, offered, never applied."""

    change: dict[str, Any]
    what: str
    peak_bytes: int
    fits: bool | None = Field(description="null: it leans on what the node has, and that is unknown")
    changes: str = Field(description="what it changes about the training")


class Searched(Value):
    """What the search looked at."""

    layouts: int
    legal: int
    fitting: int
    rungs: tuple[str, ...]
    seconds: float | None = None


class SetupAnswer(Value):
    """The answer of ``recommend_setup``."""

    verdict: Verdict = Field(description="the worse of the GPU's and the node's")
    layout: Layout
    framework: str
    rung: str
    steps: tuple[Step, ...]
    estimate: MemoryAnswer
    alternatives: tuple[Alternative, ...]
    next_rung: Alternative | None
    fastest: Alternative | None
    searched: Searched
    suggestions: tuple[Suggestion, ...]
    assumptions: tuple[Assumption, ...]
    warnings: tuple[str, ...]
    next_calls: tuple[NextCall, ...]
    versions: dict[str, str]


class ModelAnswer(Value):
    """The answer of ``describe_model``."""

    name: str
    model_type: str
    exact: bool
    notes: tuple[str, ...]
    parameters: ParameterCount
    layers: int
    hidden: int
    vocab: int
    max_positions: int
    flops_per_token_forward: int = Field(description="matmul FLOP of one token's forward pass, attention at 4,096")
    checkpoint_bytes: int = Field(description="bf16 checkpoint on disk")
    architecture: dict[str, Any]
    versions: dict[str, str]


class CatalogEntry(Value):
    """One thing the catalog knows."""

    id: str
    kind: str
    title: str
    aliases: tuple[str, ...] = ()
    facts: dict[str, Any] = Field(default_factory=dict)
    sources: tuple[str, ...] = ()
    checked_on: str = ""


class CatalogAnswer(Value):
    """The answer of ``list_catalog``."""

    entries: tuple[CatalogEntry, ...]
    total: int
    kinds: tuple[str, ...]
    versions: dict[str, str]
