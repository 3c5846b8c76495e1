"""What a rule file holds: the values behind ``rules/**.yaml``. The JSON Schema for editors is made from these."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from advisor.types import arguments as a
from advisor.types.base import Share, Value

Identifier = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]


def _as_text(value: Any) -> Any:
    """A bare number or truth value is an expression too."""
    return str(value) if isinstance(value, (bool, int, float)) else value


Formula = Annotated[
    str, BeforeValidator(_as_text), Field(min_length=1, max_length=1_000, description="an expression over the facts")
]
Template = Annotated[str, Field(min_length=1, max_length=1_000, description="a sentence; {fact} is replaced")]
Status = Literal["stable", "experimental", "deprecated"]
Given = dict[str, bool | int | float | str]


class Source(Value):
    """Where a rule comes from: a key of the catalog's sources, and the place in it."""

    key: str
    at: str = ""

    def __str__(self) -> str:
        return f"{self.key}, {self.at}" if self.at else self.key


class Rule(Value):
    """What every rule carries."""

    id: Identifier
    title: str
    sources: tuple[Source, ...] = Field(min_length=1)
    status: Status
    checked_on: date


class HoldsAndBreaks(Value):
    """Facts under which a constraint holds, and facts under which it is broken. The tests run them."""

    holds: tuple[Given, ...] = Field(min_length=1)
    breaks: tuple[Given, ...] = Field(min_length=1)


class FiresAndSilent(Value):
    """Facts under which a step is taken, and facts under which it is passed over. The tests run them."""

    fires: tuple[Given, ...] = Field(min_length=1)
    silent: tuple[Given, ...] = Field(description="empty for a step that is always taken")


class Constraint(Rule):
    """What is legal. ``require`` must hold wherever ``applies`` does."""

    frameworks: tuple[a.Framework, ...] | Literal["all"] = "all"
    applies: Formula = "True"
    require: Formula
    message: Template
    legal: Formula | None = Field(default=None, description="the legal values of the argument that pointer names")
    pointer: str = Field(description="the layout or training argument at fault")
    examples: HoldsAndBreaks


class Because(Value):
    """A sentence and when it is the one to say; the first that applies is said."""

    when: Formula = "True"
    say: Template


class Step(Rule):
    """One question of the tree: which levers it sets, when it is taken, and why."""

    question: str
    levers: tuple[str, ...] = Field(description="layout arguments that the step sets; empty for a step that only says")
    notch: str = Field(default="", description="the lever whose next lower and higher value the answer compares")
    when: Formula
    because: tuple[Because, ...] = Field(min_length=1)
    time: tuple[str, ...] = Field(default=(), description="parts of a step's time that the levers add")
    caveats: str = ""
    examples: FiresAndSilent


class Advice(Rule):
    """What the articles advise: when it concerns a job, what to say, and whether the article is right.

    The condition and the sentence may use facts of the answer beside those of the case.
    """

    when: Formula
    say: Template
    said: str = Field(description="what an article says, in a few words")
    judged: Literal["right", "approximate", "wrong"] = Field(description="whether what an article says holds")
    caveats: str = ""
    pointer: str = Field(description="the argument to change")
    examples: FiresAndSilent


class Choice(Value):
    """Levers that a rung tries together; a rung is tried with each of its choices."""

    recompute: a.RecomputePolicy = "none"
    recompute_share: Share = Field(default=0.0, description="share of a stage's layers, for recompute=blocks")
    offload_optimizer: a.OffloadTarget = "none"
    offload_parameters: a.OffloadTarget = "none"
    offload_activations: a.OffloadTarget = "none"
    offload_fraction: Share = 1.0
    laws: tuple[a.Law, ...] = Field(default=("priority", "strict"), description="the laws under which it is tried")


class Rung(Rule):
    """One rung of the ladder: searched only when no rung above it has a layout that fits."""

    choices: tuple[Choice, ...] = Field(min_length=1)
    leave_if_costlier_by: float | None = Field(
        default=None, ge=0, description="leave it when its best costs this share more than the next rung's best"
    )


class Preference(Rule):
    """What decides between layouts that are as good as equally fast: the smaller value wins."""

    smaller: Formula


class TieBand(Value):
    """Layouts whose step times differ by at most this share count as equal."""

    dense: Share
    moe: Share


class Ladder(Value):
    """rules/rungs.yaml: the rungs in order, and how ties are broken."""

    rungs: tuple[Rung, ...] = Field(min_length=1)
    tie_band: TieBand
    preferences: tuple[Preference, ...] = Field(min_length=1)
    largest_micro_batch: int = Field(ge=1, le=1024)
    shortest_local_sequence: int = Field(ge=1, description="tokens a context-parallel rank is left at least")
    tokens_per_gpu: int = Field(ge=1, description="tokens a step each GPU is given when no global batch is named")


class Forbid(Value):
    """A site's own prohibition."""

    id: Identifier
    when: Formula
    message: Template
    pointer: str = ""


class Cap(Value):
    """A site's own upper bound on an argument."""

    id: Identifier
    argument: str
    at_most: int = Field(ge=1)
    message: Template = "this site caps it"


class Prefer(Value):
    """A site's own preference: where it applies, the cost is multiplied; below 1 attracts, above 1 repels."""

    id: Identifier
    when: Formula
    factor: float = Field(gt=0, le=100)


class Headroom(Value):
    """The share of usable memory that a site wants left free, at least."""

    id: Identifier
    share: float = Field(ge=0, lt=0.9)


class Overlay(Value):
    """A site's policy file: laid over the shipped rules, its ids shown in the answer."""

    forbid: tuple[Forbid, ...] = ()
    cap: tuple[Cap, ...] = ()
    prefer: tuple[Prefer, ...] = ()
    headroom: Headroom | None = None


class ConstraintFile(Value):
    """rules/constraints/*.yaml."""

    rules: tuple[Constraint, ...] = Field(min_length=1)


class AdviceFile(Value):
    """rules/advice/*.yaml."""

    advice: tuple[Advice, ...] = Field(min_length=1)


class Law(Value):
    """Everything that decides between legal layouts, as the files hold it."""

    steps: tuple[Step, ...]
    ladder: Ladder


def json_schema() -> dict[str, Any]:
    """The JSON Schema of every kind of rule file, for editors."""
    from pydantic.json_schema import models_json_schema  # noqa: PLC0415 - only the generator needs it

    kinds = (ConstraintFile, Step, Ladder, AdviceFile, Overlay)
    _, definitions = models_json_schema([(kind, "validation") for kind in kinds], title="TrainFit rule files")
    references = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in kinds]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **definitions, "anyOf": references}
