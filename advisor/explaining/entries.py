"""What can be explained: topics written as data, and an entry for each term, symbol, rule, optimizer and conflict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from advisor.articles import conflicts
from advisor.articles.evaluate import FORMULAS
from advisor.catalog.reader import entry_ids, read_catalog_file
from advisor.constraints.rulebook import advice_rules, constraints, law
from advisor.constraints.rules import Choice
from advisor.formula import Term
from advisor.symbols import GLOSSARY
from advisor.terms import TERMS
from advisor.timing.terms import TERMS as TIMES


@dataclass(frozen=True)
class Entry:
    """One thing that can be explained.

    Attributes:
        asked: other words that readers use for it; searched, never shown.
        asks: ways to ask for it, in English and Chinese; searched, never shown.
        figures: worked numbers of the articles that show it.
        compare: a job and changes to it, by name: estimated when asked.
        matrix: a job and changes to it: which component each change divides, and by how much.
    """

    id: str
    kind: str
    title: str
    says: tuple[str, ...] = ()
    asked: str = ""
    asks: tuple[str, ...] = ()
    formula: str = ""
    figures: tuple[str, ...] = ()
    compare: Mapping[str, Any] = field(default_factory=dict)
    matrix: Mapping[str, Any] = field(default_factory=dict)
    table: tuple[tuple[str, ...], ...] = ()
    caveats: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    see: tuple[str, ...] = ()


@cache
def entries() -> Mapping[str, Entry]:
    """Every entry by its id; topics first."""
    found = (*_topics(), *_terms(), *_symbols(), *_rules(), *_optimizers(), *_conflicts())
    return {entry.id: entry for entry in found}


@cache
def beside() -> Mapping[str, Entry]:
    """Subjects near ours that nothing here answers: what asks for one of them is told apart from what is ours."""
    return {
        key: Entry(key, kind="beside", title=key.replace("-", " "), asked=row["asked"], asks=_lines(row["asks"]))
        for key, row in read_catalog_file("knowledge/beside.yaml").items()
    }


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.splitlines())


def _topics() -> Iterator[Entry]:
    for name in entry_ids("knowledge/topics"):
        for key, row in read_catalog_file(f"knowledge/topics/{name}.yaml").items():
            listed = {part: tuple(row.get(part, ())) for part in ("says", "figures", "caveats", "sources", "see")}
            yield Entry(
                id=key,
                kind=name,
                title=row["title"],
                asked=row.get("asked", ""),
                asks=_lines(row.get("asks", "")),
                formula=row.get("formula", ""),
                compare=row.get("compare", {}),
                matrix=row.get("matrix", {}),
                table=tuple(tuple(map(str, line)) for line in row.get("table", ())),
                **listed,
            )


def _terms() -> Iterator[Entry]:
    for kind, terms in (("term", TERMS), ("time", TIMES), ("article formula", FORMULAS.values())):
        for term in terms:
            yield _of_term(kind, term)


def _of_term(kind: str, term: Term) -> Entry:
    when = "; ".join(f"{name} is {' or '.join(values)}" for name, values in term.when.items())
    return Entry(
        id=f"{'formula' if kind == 'article formula' else 'term'}:{term.name}",
        kind=kind,
        title=f"{term.name} ({term.slot})",
        says=(term.summary, *((f"It counts when {when}.",) if when else ())),
        asked=term.slot.replace(".", " ").replace("_", " ") + " " + term.name.replace("_", " "),
        formula=term.formula,
        sources=(term.source,),
        see=tuple(f"symbol:{name}" for name in term.symbols if name in GLOSSARY),
    )


def _symbols() -> Iterator[Entry]:
    for symbol in GLOSSARY.values():
        used = [f"term:{term.name}" for term in TERMS if symbol.name in term.symbols]
        yield Entry(
            id=f"symbol:{symbol.name}",
            kind="symbol",
            title=f"{symbol.name}: {symbol.meaning}",
            says=(f"{symbol.name} is {symbol.meaning}" + ("" if symbol.unit == "1" else f", in {symbol.unit}") + ".",),
            asked="symbol letter",
            see=tuple(used[:8]),
        )


def _rules() -> Iterator[Entry]:
    for rule in constraints():
        yield Entry(
            id=f"rule:{rule.id}",
            kind="constraint",
            title=rule.title,
            says=(f"Required: {rule.require}.", f"Otherwise: {rule.message}"),
            sources=tuple(map(str, rule.sources)),
        )
    for step in law().steps:
        yield Entry(
            id=f"rule:{step.id}",
            kind="step",
            title=step.title,
            says=(step.question, *(f"Because: {reason.say}" for reason in step.because)),
            asked="step of the walk",
            caveats=tuple(filter(None, (step.caveats,))),
            sources=tuple(map(str, step.sources)),
        )

    for rung in law().ladder.rungs:
        yield Entry(
            id=f"rule:{rung.id}",
            kind="rung",
            title=rung.title,
            says=tuple(f"Tried together: {_set(choice)}." for choice in rung.choices),
            asked="rung of the ladder",
            sources=tuple(map(str, rung.sources)),
        )
    for preference in law().ladder.preferences:
        yield Entry(
            id=f"rule:{preference.id}",
            kind="preference",
            title=preference.title,
            says=(f"Between layouts that are as good as equally fast, the smaller wins: {preference.smaller}.",),
            asked="tie between layouts",
            sources=tuple(map(str, preference.sources)),
        )
    for advice in advice_rules():
        yield Entry(
            id=f"rule:{advice.id}",
            kind="advice",
            title=advice.title,
            says=(f"Said: {advice.said}. That is {advice.judged}.", f"When {advice.when}: {advice.say}."),
            asked="advice warning",
            caveats=tuple(filter(None, (advice.caveats,))),
            sources=tuple(map(str, advice.sources)),
        )


def _set(choice: Choice) -> str:
    """The levers that a choice sets, as arguments."""
    return ", ".join(f"{name}={value}" for name, value in choice.model_dump(exclude_defaults=True).items()) or "none"


def _optimizers() -> Iterator[Entry]:
    for key, row in read_catalog_file("optimizers.yaml").items():
        yield Entry(
            id=f"optimizer:{key}",
            kind="optimizer",
            title=row["title"],
            says=(f"Beside weights, gradients and a master copy: {row['matrix']} bytes a parameter of a matrix.",),
            asked=f"optimizer {key.replace('_', ' ')} " + " ".join(row["aliases"]).replace("_", " "),
            compare={"base": {**EXAMPLE, "framework": "fsdp1"}, "changes": {key: {"optimizer": key}}},
            caveats=tuple(filter(None, (row.get("notes", ""),))),
            sources=(str(row["source"]),),
        )


def _conflicts() -> Iterator[Entry]:
    for conflict in conflicts().values():
        yield Entry(
            id=f"conflict:{conflict.id}",
            kind="conflict",
            title=conflict.title,
            says=(f"An article says: {conflict.said}.", f"What holds: {conflict.fact}."),
            asked="wrong mistake conflict",
        )


#: The job that figures are computed for when none is given.
EXAMPLE: Mapping[str, Any] = {
    "model": "llama-3-8b",
    "hardware": "1x8 H100-80GB",
    "framework": "fsdp2",
    "zero_stage": 3,
    "sequence_length": 8192,
}
