"""``explain``: a question, or the id of an entry, with figures computed when asked; or a plain "not covered"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from advisor.articles import (
    ARTICLES,
    ArticleCase,
    Figure,
    as_printed,
    evaluate,
    find_case,
    find_conflict,
    read_letters,
    stated_text,
)
from advisor.articles.letters import LETTERS
from advisor.errors import AdvisorError, unknown_name
from advisor.explaining import live, probe
from advisor.explaining.entries import EXAMPLE, Entry, entries
from advisor.explaining.search import BESIDE, Found, search
from advisor.types.answers import SymbolValue
from advisor.types.explain import ArticleNote, EntryName, ExplainAnswer, ExplainArguments
from advisor.versions import versions

__all__ = ["explain"]

MOST_NEAR = 5
_REFERENCE = re.compile(r"\{(s[013]-[\w.+-]+)\}")


def explain(arguments: ExplainArguments) -> ExplainAnswer:
    """The entry that answers, with its figures for the job asked about.

    Raises:
        AdvisorError: neither or both of question and id; ``unknown_entry``; a letter that the number does not hold.
    """
    if (arguments.question is None) == (arguments.id is None):
        raise AdvisorError("invalid_value", "give either question or id", pointer="/question")
    if arguments.id is not None:
        return _by_id(arguments.id, arguments)
    question = arguments.question or ""
    found = search(question)
    if not found or not found[0].answers:
        return ExplainAnswer(covered=False, see=_names(_entries(found)[:MOST_NEAR]), versions=versions())
    _refuse_values(arguments)
    asked = live.read_question(question, arguments.case)
    return _of_entry(found[0].entry, asked, _entries(found)[1:MOST_NEAR])


def _by_id(key: str, arguments: ExplainArguments) -> ExplainAnswer:
    if key.partition("-")[0] in ARTICLES:
        return _of_case(find_case(key), arguments)
    known = entries()
    short = next((name for name in (key, f"term:{key}", f"symbol:{key}", f"rule:{key}") if name in known), None)
    if short is None:
        raise unknown_name("entry", key, known, pointer="/id")
    _refuse_values(arguments)
    return _of_entry(known[short], live.Asked(arguments.case), ())


def _refuse_values(arguments: ExplainArguments) -> None:
    if arguments.values:
        detail = "values change the letters of an article's worked number; give its id, such as s0-ch7.4-total"
        raise AdvisorError("invalid_value", detail, pointer="/values")


def _of_case(case: ArticleCase, arguments: ExplainArguments) -> ExplainAnswer:
    if arguments.case is not None:
        detail = "a worked number of an article takes values, not a case: values={'Phi': 13e9}"
        raise AdvisorError("invalid_value", detail, pointer="/case")
    figure = evaluate(case, read_letters(case, arguments.values or {}))
    letters = tuple(
        SymbolValue(symbol=name, meaning=LETTERS[name].meaning, unit=LETTERS[name].unit, value=value)
        for name, value in figure.letters.items()
    )
    shown, parts = live.figure_of(case, figure), live.parts_of(figure)
    met = tuple(map(find_conflict, case.conflicts))
    return ExplainAnswer(
        covered=True,
        id=case.id,
        kind="worked number",
        title=case.title,
        formula=shown.formula,
        figures=(shown, *parts) if len(parts) > 1 else (shown,),
        letters=letters,
        caveats=tuple(f"{each.title}: said, {each.said}; in fact, {each.fact}" for each in met),
        sources=(f"{case.article} §{case.section}",),
        article=_note(case, figure),
        see=tuple(EntryName(id=f"conflict:{each.id}", title=each.title) for each in met),
        versions=versions(),
    )


def _note(case: ArticleCase, figure: Figure) -> ArticleNote:
    return ArticleNote(
        article=case.article,
        section=case.section,
        stated=stated_text(case, case.stated),
        as_printed=stated_text(case, as_printed(case, figure)),
        agrees=case.agrees,
        sound=case.sound,
        better="" if case.better is None else f"{case.better:,.12g} {case.better_unit}",
    )


def _of_entry(entry: Entry, asked: live.Asked, near: tuple[Entry, ...]) -> ExplainAnswer:
    figures = [live.worked(case_id, asked) for case_id in entry.figures]
    if entry.compare:
        figures += live.compared(entry, asked)
    if entry.kind in ("term", "symbol"):
        read = live.of_term if entry.kind == "term" else live.of_symbol
        figures += read(entry.id.partition(":")[2], asked)
    table = tuple(live.matrix(entry, asked)) if entry.matrix else ()
    program, beyond = _program(asked) if entry.id == probe.PROBE else ("", ())
    return ExplainAnswer(
        covered=True,
        id=entry.id,
        kind=entry.kind,
        title=entry.title,
        says=tuple(map(_filled, entry.says)),
        formula=entry.formula,
        figures=tuple(figures),
        table=tuple(tuple(map(_filled, row)) for row in entry.table) or table,
        program=program,
        caveats=(*beyond, *entry.caveats),
        sources=entry.sources,
        see=_names((*(entries()[key] for key in entry.see if key in entries()), *near)),
        versions=versions(),
    )


def _program(asked: live.Asked) -> tuple[str, tuple[str, ...]]:
    """The program of one step for the job asked about, and why it is not whole."""
    case = live.legal_case(live.job(EXAMPLE, asked))
    beyond = probe.beyond(case, asked.case)
    said = f"no whole program is written for {beyond}: put these lines into your own" if beyond else ""
    return probe.program(case, asked.case), (said,) if said else ()


def _filled(text: str) -> str:
    """A text with its worked numbers, ``{s0-ch1.5-act}``, put in as the article has them."""
    return _REFERENCE.sub(lambda match: live.worked(match[1], live.Asked()).text, text)


def _entries(found: Iterable[Found]) -> tuple[Entry, ...]:
    return tuple(each.entry for each in found if each.entry.kind != BESIDE)


def _names(found: Iterable[Entry]) -> tuple[EntryName, ...]:
    unique = {entry.id: EntryName(id=entry.id, title=entry.title) for entry in found}
    return tuple(unique.values())[: 2 * MOST_NEAR]
