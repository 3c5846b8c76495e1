"""Figures computed when asked: worked numbers with other values, estimates of a job and of changes to it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from advisor.architecture import count_parameters, resolve_model
from advisor.articles import ArticleCase, evaluate, find_case
from advisor.articles.evaluate import Figure
from advisor.articles.printing import UNITS
from advisor.catalog.reader import entry_ids, normalised
from advisor.constraints.legality import require_legal
from advisor.errors import AdvisorError
from advisor.estimate import Breakdown, estimate
from advisor.explaining.calculators import by_others
from advisor.explaining.entries import EXAMPLE, Entry
from advisor.node_memory import host_lines
from advisor.placement import Place
from advisor.resolve import resolve
from advisor.symbols import GLOSSARY, Values
from advisor.types.arguments import CaseArguments
from advisor.types.case import Case
from advisor.types.explain import ExplainedFigure
from advisor.units import BILLION, MILLION, format_bytes, format_count

_SIZE = re.compile(r"(?<![A-Za-z0-9_.])(\d{1,5}(?:\.\d{1,3})?)\s*b(?![a-z])", re.IGNORECASE)
_GPUS = re.compile(r"(\d{1,6})\s*(?:x\s*\w+\s*)?(?:gpus?|cards?|ranks?|张|块|卡)", re.IGNORECASE)
#: Components, by the first part of their slots.
COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "weights": ("weights", "gather", "adapters.weights"),
    "gradients": ("gradients", "adapters.gradients"),
    "optimizer": ("optimizer", "adapters.optimizer"),
    "activations": ("norms", "residual", "attention", "ffn", "moe", "checkpoint", "working", "head", "activations"),
}


#: Letters that belong to one model: its size alone does not tell them.
OF_A_MODEL = {"L", "h", "N_e", "N_l"}


@dataclass(frozen=True)
class Asked:
    """What a question names beside its subject: a job, or the model and the GPUs in its words."""

    case: CaseArguments | None = None
    model: str = ""
    parameters: float | None = None
    gpus: int | None = None

    @property
    def letters(self) -> Mapping[str, float]:
        """Letters of the articles that the words give."""
        return {key: value for key, value in {"N": self.parameters, "dp": self.gpus}.items() if value}

    @property
    def shape(self) -> Mapping[str, float]:
        """Letters of the catalog's model that the words name."""
        if self.model not in entry_ids("models"):
            return {}
        model = resolve_model(model=self.model, hf_config=None, architecture=None, allow_paths=False)
        count = count_parameters(model)
        return {"N": count.total - count.experts, "N_e": count.experts, "L": model.layers, "h": model.hidden}


def read_question(question: str, case: CaseArguments | None) -> Asked:
    """The model, its size and the GPUs that a question names."""
    size, gpus, words = _SIZE.search(question), _GPUS.search(question), normalised(question)
    named = [name for name in entry_ids("models") if normalised(name) in words]
    model = max(named, key=len, default=f"{size[1]}B" if size else "")
    return Asked(case, model, float(size[1]) * BILLION if size else None, int(gpus[1]) if gpus else None)


def subject(question: str) -> str:
    """The question without counts of GPUs: they set figures, and say nothing of the subject."""
    return _GPUS.sub(" ", question)


# --- worked numbers ---------------------------------------------------------------------------------------------------


def worked(case_id: str, asked: Asked) -> ExplainedFigure:
    """A worked number of an article, with the size and the ranks of the question where it depends on them."""
    case = find_case(case_id)
    changed = _changed(case, asked)
    shown = figure_of(case, evaluate(case, changed))
    if not changed:
        another = asked.model and OF_A_MODEL & set(case.given)
        return shown.model_copy(update={"name": f"{shown.name}, the article's own job"}) if another else shown
    here = ", ".join(f"{letter} = {format_count(value)}" for letter, value in changed.items())
    return shown.model_copy(update={"name": f"{shown.name}, here with {here}"})


def _changed(case: ArticleCase, asked: Asked) -> Mapping[str, float]:
    """Letters of the question in place of the article's; none where it names a size and the number needs a shape."""
    needed = OF_A_MODEL & set(case.given)
    letters = {**asked.letters, **asked.shape} if needed else asked.letters
    if not needed <= set(letters):
        return {}
    return {letter: value for letter, value in letters.items() if letter in case.given}


def figure_of(case: ArticleCase, figure: Figure) -> ExplainedFigure:
    """A worked number as a figure: its terms side by side."""
    above = [line for line in figure.lines if not line.below]
    below = [line for line in figure.lines if line.below]
    return ExplainedFigure(
        name=case.title,
        value=figure.value,
        upper=figure.upper,
        holds=figure.holds,
        items=figure.vector,
        text=value_text(case, figure),
        formula=_sum(above, below, lambda line: line.term.formula),
        substituted=_sum(above, below, lambda line: line.substituted),
        source=f"{case.article} §{case.section}",
    )


def parts_of(figure: Figure) -> tuple[ExplainedFigure, ...]:
    """The terms of a worked number, one a figure."""
    return tuple(
        ExplainedFigure(
            name=line.term.name, value=line.value, text=f"{line.value:,.10g}", formula=line.term.formula,
            substituted=line.substituted, source=line.term.source,
        )
        for line in figure.lines
    )  # fmt: skip


def _sum(above: Any, below: Any, text: Any) -> str:
    def joined(lines: Any) -> str:
        parts = [("- " if line.sign < 0 else "+ ") + text(line) for line in lines]
        return " ".join(parts).removeprefix("+ ")

    return f"({joined(above)}) / ({joined(below)})" if below else joined(above)


def value_text(case: ArticleCase, figure: Figure) -> str:
    """The value in the article's unit; bytes also in GiB."""
    if figure.vector:
        return "[" + ", ".join(f"{number:g}" for number in figure.vector) + "]"
    assert figure.value is not None
    if figure.holds is not None:
        limit = case.limit[0].replace("_", " ") if case.limit else ""
        outcome = "yes" if figure.holds else "no"
        return f"{outcome}: {_amount(figure.value)} is {'' if figure.holds else 'not '}{limit} the limit"
    return _in_unit(figure.value, case.unit) + (f" to {_in_unit(figure.upper, case.unit)}" if figure.upper else "")


def _in_unit(value: float, unit: str) -> str:
    shown = f"{value / UNITS.get(unit, 1):,.4g} {unit}" if unit not in ("count", "units", "ratio") else f"{value:,.4g}"
    return f"{shown} ({format_bytes(value)})" if unit in ("GB", "MB", "TB") else shown


def _amount(value: float) -> str:
    return format_bytes(value) if value > MILLION else f"{value:,.4g}"


# --- estimates --------------------------------------------------------------------------------------------------------


#: The name of the figure that nothing was changed for; it says which job is meant.
AS_IT_IS = "as it is"


def compared(entry: Entry, asked: Asked) -> Iterator[ExplainedFigure]:
    """What other calculators say of a job; its peak, and that of each change to it, by component."""
    base, changes = entry.compare.get("base", EXAMPLE), entry.compare.get("changes", {})
    if "calculators" in entry.compare:
        yield from by_others(entry.compare["calculators"], legal_case(job(base, asked)))
    for name, change in {AS_IT_IS: {}, **changes}.items():
        yield _estimated(name, {**job(base, asked), **change})


def job(base: Mapping[str, Any], asked: Asked) -> dict[str, Any]:
    """The arguments of the job asked about; of the base, with the model that the words name, when none is given."""
    if asked.case is not None:
        return asked.case.model_dump(exclude_none=True)
    return {**base, "model": asked.model} if asked.model else dict(base)


def _estimated(name: str, arguments: Mapping[str, Any]) -> ExplainedFigure:
    try:
        breakdown = estimate(legal_case(arguments))
    except AdvisorError as error:
        return ExplainedFigure(name=name, value=None, text=error.detail)
    parts = ", ".join(f"{part} {format_bytes(size)}" for part, size in components(breakdown).items())
    of = f" of {_job_words(breakdown.case)}" if name == AS_IT_IS else ""
    text = f"{format_bytes(breakdown.peak_bytes)} a GPU{of}: {parts}"
    return ExplainedFigure(name=name, value=breakdown.peak_bytes, text=text)


def _job_words(case: Case) -> str:
    cluster, training = case.cluster, case.training
    return (
        f"{case.model.name} on {cluster.nodes}x{cluster.gpus_per_node} {cluster.device.name} ({training.framework}, "
        f"{training.sequence_length:,} tokens)"
    )


def legal_case(arguments: Mapping[str, Any]) -> Case:
    """The case of plain arguments.

    Raises:
        AdvisorError: they contradict one another, or no framework runs them.
    """
    try:
        case = resolve(CaseArguments.model_validate(dict(arguments)), allow_paths=False)
    except ValidationError as error:
        raise AdvisorError("invalid_value", str(error.errors()[0]["msg"]), pointer="/case") from error
    require_legal(case)
    return case


def components(breakdown: Breakdown) -> Mapping[str, int]:
    """Bytes at the peak by component; what is none of the four is ``other``."""
    slots = breakdown.by_slot
    found = {
        name: sum(size for slot, size in slots.items() if slot.startswith(starts))
        for name, starts in COMPONENTS.items()
    }
    return {**found, "other": sum(slots.values()) - sum(found.values())}


def matrix(entry: Entry, asked: Asked) -> Iterator[tuple[str, ...]]:
    """Component by dimension: what is left of each when one dimension doubles, 1 where it divides nothing."""
    changes = entry.matrix["changes"]
    base = job(entry.matrix["base"], asked)
    resting = {name: _resting({**base, **change}) for name, change in {"": {}, **changes}.items()}
    yield ("component", *changes)
    for component in COMPONENTS:
        before = resting[""][component]
        yield (component, *(f"{resting[name][component] / before:.2f}" if before else "-" for name in changes))


def _resting(arguments: Mapping[str, Any]) -> Mapping[str, int]:
    """Bytes by component where each is largest: the sum over the lines of the first stage."""
    lines = estimate(legal_case(arguments)).stages[0].lines
    return {
        name: sum(
            max((line.at(phase) for phase in line.presence if phase not in ("host", "nvme")), default=0)
            for line in lines
            if line.term.slot.startswith(starts) and not line.term.slot.startswith("gather")
        )
        for name, starts in COMPONENTS.items()
    }


def of_term(name: str, asked: Asked) -> Iterator[ExplainedFigure]:
    """Where a term stands in the job: its value with the job's numbers."""
    try:
        breakdown = estimate(legal_case(job(EXAMPLE, asked)))
    except AdvisorError as error:
        yield ExplainedFigure(name=name, value=None, text=error.detail)
        return
    for line in (*breakdown.binding.lines, *dict(host_lines(breakdown)).values()):
        if line.term.name == name:
            amount = float(line.amount)
            text = f"{format_bytes(amount)} in {breakdown.case.model.name}"
            yield ExplainedFigure(
                name=name, value=amount, text=text, formula=line.term.formula,
                substituted=line.term.substituted(line.values), source=line.term.source,
            )  # fmt: skip
            return
    yield ExplainedFigure(name=name, value=None, text=f"not in use in this job ({breakdown.case.model.name})")


def of_symbol(name: str, asked: Asked) -> Iterator[ExplainedFigure]:
    """A symbol's value in the job."""
    try:
        case = legal_case(job(EXAMPLE, asked))
        group, _ = Place(case, case.layout).tables.groups[0]
        value = float(Values(Place(case, case.layout, 0, group))[name])
    except (AdvisorError, LookupError) as error:
        detail = error.detail if isinstance(error, AdvisorError) else "made while a step is timed"
        yield ExplainedFigure(name=name, value=None, text=detail)
        return
    unit = GLOSSARY[name].unit
    text = format_count(value) if unit == "param" else f"{value:,.6g}"
    yield ExplainedFigure(
        name=name, value=value, text=f"{text}{'' if unit == '1' else f' {unit}'} in {case.model.name}"
    )
