"""The text of ``explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from advisor.words.phrases import joined
from advisor.words.tables import table

if TYPE_CHECKING:
    from advisor.types.explain import ArticleNote, ExplainAnswer, ExplainedFigure


def explain_text(answer: ExplainAnswer) -> str:
    """An entry as text; or that nothing covers the question, with the nearest entries."""
    near = [f"See: {'; '.join(f'{each.id} ({each.title})' for each in answer.see[:5])}"] if answer.see else []
    if not answer.covered:
        return joined([["Not covered: no entry answers this, and none is made up."], near])
    return joined(
        [
            [f"{answer.title} [{answer.id}]"],
            list(answer.says),
            [f"Formula: {answer.formula}"] if answer.formula else [],
            [line for figure in answer.figures for line in _figure_lines(figure, answer.formula)],
            table(answer.table) if answer.table else [],
            [answer.program] if answer.program else [],
            _article_lines(answer.article) if answer.article else [],
            [f"Careful: {caveat}" for caveat in answer.caveats],
            [f"Sources: {'; '.join(answer.sources)}"] if answer.sources else [],
            near,
        ]
    )


def _figure_lines(figure: ExplainedFigure, formula: str) -> list[str]:
    shown = [f"{figure.name}: {figure.text}"]
    if figure.substituted:
        own = "" if figure.formula == formula else f"{figure.formula} = "
        shown.append(f"  = {own}{figure.substituted}")
    return shown


def _article_lines(note: ArticleNote) -> list[str]:
    agreed = {True: "which follows from its formula", False: "which does not follow from its formula", None: ""}
    printed = f"{note.article} §{note.section} prints {note.stated or 'no number'}"
    lines = [", ".join(part for part in (printed, agreed[note.agrees]) if part) + "."]
    if note.better:
        lines.append(f"Better: {note.better}.")
    elif not note.sound:
        lines.append("The formula is not used outside the article's profile.")
    return lines
