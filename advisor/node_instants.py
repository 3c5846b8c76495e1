"""What loading weights and saving a checkpoint take of a node: lines of one layout, or bytes of columns of layouts.

Files that are mapped and not changed are pages that the system takes back, and do not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from advisor.checkpoints import LOADING, SAVING, is_sure, ways
from advisor.choices import choices
from advisor.columnwise import Number, choose
from advisor.formula import Term
from advisor.lines import Line, whole_bytes
from advisor.placement import Place
from advisor.symbols import Values
from advisor.terms import select
from advisor.types.case import Case

Beside = Literal["load", "save"]
LOAD: Beside = "load"
SAVE: Beside = "save"
#: What fills each instant beside the step, the argument that says how it is done, and its name among choices.
SLOTS: Mapping[Beside, str] = {LOAD: "host.loading", SAVE: "host.saving"}
ARGUMENTS: Mapping[str, str] = {LOAD: LOADING, SAVE: SAVING}
_CHOICES: Mapping[Beside, str] = {LOAD: "loading", SAVE: "saving"}


def lines_beside(place: Place) -> Iterator[tuple[Beside, Line]]:
    """The line of each instant beside the step, on a node with this stage; an article knows neither."""
    terms, values = _terms(place.case), Values(place)
    for instant, slot in SLOTS.items():
        if slot in terms:
            yield instant, Line(terms[slot], values, whole_bytes(terms[slot](values)), {instant: 1})


def bytes_beside(place: Place, instant: Beside) -> Number:
    """Bytes of a node at an instant, in columns of layouts; 0 where its way is a script's that nobody gave."""
    case, held = place.case, 0
    if not is_sure(case, ARGUMENTS[instant]):
        return held
    values = Values(place)
    for stage, way in ways(case, ARGUMENTS[instant]).items():
        term = _terms(case, **{_CHOICES[instant]: way}).get(SLOTS[instant])
        if term is not None:
            held = choose(place.layout.zero_stage >= stage, whole_bytes(term(values)), held)
    return held


def _terms(case: Case, **chosen: str) -> Mapping[str, Term]:
    return select(choices(case) | {"ffn_kind": "none"} | chosen)
