"""What every stage of a layout shares: the glossary, a token's work, the seconds of one pass over one layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from advisor.columnwise import Number
from advisor.formula import Term
from advisor.placement import Place
from advisor.recompute import keeps
from advisor.symbols import GLOSSARY, Values
from advisor.timing.terms import STAGE_WORK, TOKEN_WORK, select
from advisor.types.case import Case

#: Symbols that differ from stage to stage; everything else in the formulas of time is the same on all.
OF_A_STAGE = frozenset({"P_t", "P_r", "P_e", "P_a", "G_t", "G_r", "G_h", "G_b", "G_e", "n_c"})


class StageValues(dict[str, Number]):
    """The glossary on one stage: what differs from stage to stage is read here, the rest once for the job."""

    def __init__(self, job: Job, place: Place) -> None:
        super().__init__()
        self.beneath, self.place = job.values, place
        self.update({symbol: job.terms[slot](self) for slot, symbol in STAGE_WORK.items()})

    def __missing__(self, name: str) -> Number:
        value = self[name] = GLOSSARY[name].read(self.place) if name in OF_A_STAGE else self.beneath[name]
        return value


@dataclass(frozen=True)
class Job:
    """One layout of a case, or columns of layouts.

    Attributes:
        case: the job.
        layout: its layout, or columns.
        assumed: values that replace the glossary's, as a fit of efficiencies needs.
        kinds: the same job with each combination of what a pass over a layer depends on once.
        rows: for each layout its row among them.
        places: stages that were looked at before, with what was read of them.
    """

    case: Case
    layout: Any
    assumed: Mapping[str, Number] = field(default_factory=dict)
    kinds: Job | None = None
    rows: Any = None
    places: Mapping[int, Place] = field(default_factory=dict)
    _passes: dict[str, Number] = field(default_factory=dict, repr=False)
    _again: dict[str, Number] = field(default_factory=dict, repr=False)

    def place(self, stage: int) -> Place:
        """One stage of the layout."""
        return self.places.get(stage) or Place(self.case, self.layout, stage)

    @cached_property
    def values(self) -> Values:
        """The glossary, with a token's work in each part of a layer."""
        values = Values(self.place(0))
        values.update(self.assumed)
        made = {symbol: self.terms[slot](values) for slot, symbol in TOKEN_WORK.items() if slot in self.terms}
        values.update(made)
        return values

    @cached_property
    def terms(self) -> Mapping[str, Term]:
        """The formulas of dense layers and of what lies around layers, by slot."""
        return select(self.case, moe=False)

    @cached_property
    def expert_terms(self) -> Mapping[str, Term]:
        """The formulas of layers with experts, by slot."""
        return select(self.case, moe=True)

    def one_pass(self, term: Term) -> Number:
        """Seconds of one pass over one layer, for a formula that is proportional to them."""
        if term.name not in self._passes:
            self._passes[term.name] = self._of_kind(term) if self.kinds else self._one_pass(term)
        return self._passes[term.name]

    def _of_kind(self, term: Term) -> Number:
        assert self.kinds is not None
        seconds = self.kinds.one_pass(term)
        return seconds[self.rows] if getattr(seconds, "ndim", 0) else seconds

    def _one_pass(self, term: Term) -> Number:
        values = self.values
        return term.function(*[1 if symbol == "n_p" else values[symbol] for symbol in term.symbols])

    def made_again(self, slot: str) -> Number:
        """1 where the recompute policy drops this slot's tensors in each layer, else 0; plainly 0 where none does."""
        if slot not in self._again:
            dropped = 1 - keeps(self.place(0), slot)
            self._again[slot] = dropped if isinstance(dropped, int) or dropped.any() else 0
        return self._again[slot]
