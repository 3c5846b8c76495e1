"""Arguments and answer of ``explain``."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from advisor.types.answers import SymbolValue
from advisor.types.arguments import CaseArguments
from advisor.types.base import Value

#: Kinds of what can be explained by id; ``list_catalog`` lists them.
EXPLAINED: Final = ("topics", "terms", "symbols", "rules", "conflicts", "numbers")


class ExplainArguments(Value):
    """What is to be explained: a question in words, or an entry by its id."""

    question: str | None = Field(default=None, max_length=1000, description="in words, English or Chinese")
    id: str | None = Field(
        default=None,
        max_length=200,
        description="an entry: zero, term:loss.kept, symbol:tp, rule:…, conflict:C26, s0-ch7.4-total",
    )
    case: CaseArguments | None = Field(default=None, description="the job that the figures are computed for")
    values: dict[str, float] | None = Field(
        default=None, max_length=40, description="letters of an article's worked number, changed: {'Phi': 13e9}"
    )


class ExplainedFigure(Value):
    """One number, computed when asked."""

    name: str
    value: float | None = Field(description="in base units: bytes, parameters, seconds; none for a list")
    upper: float | None = Field(default=None, description="the upper end of a range")
    holds: bool | None = Field(default=None, description="the outcome of a comparison")
    items: tuple[float, ...] = Field(default=(), description="a list: what the first rank holds")
    text: str = Field(description="the number with its unit")
    formula: str = ""
    substituted: str = ""
    source: str = ""


class ArticleNote(Value):
    """What an article prints for a worked number, and whether that holds."""

    article: str
    section: str
    stated: str
    as_printed: str = Field(default="", description="the computed value in the article's own unit and rounding")
    agrees: bool | None = Field(description="the printed number follows from the article's own formula")
    sound: bool = Field(description="the formula may be used beyond the article")
    better: str = Field(default="", description="a better value, where there is one")


class EntryName(Value):
    """An entry to ask for next."""

    id: str
    title: str


class ExplainAnswer(Value):
    """The answer of ``explain``."""

    covered: bool = Field(description="false: no entry answers the question, and nothing is guessed")
    id: str = ""
    kind: str = ""
    title: str = ""
    says: tuple[str, ...] = ()
    formula: str = ""
    figures: tuple[ExplainedFigure, ...] = ()
    letters: tuple[SymbolValue, ...] = ()
    table: tuple[tuple[str, ...], ...] = Field(default=(), description="rows; the first is the header")
    program: str = Field(default="", description="a program for the reader's own GPUs, where the entry is one")
    caveats: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    article: ArticleNote | None = None
    see: tuple[EntryName, ...] = Field(default=(), description="entries near this one, or nearest to the question")
    versions: dict[str, str]
