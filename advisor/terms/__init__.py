"""The physics: one topic a module, one tensor or buffer a term."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from advisor.formula import Term
from advisor.terms import attention, feed_forward, head, host, loss, norms, states, transients
from advisor.terms.articles import ARTICLE_TERMS

TERMS: tuple[Term, ...] = (
    *states.TERMS,
    *norms.TERMS,
    *attention.TERMS,
    *feed_forward.TERMS,
    *head.TERMS,
    *loss.TERMS,
    *transients.TERMS,
    *host.TERMS,
)


def _by_slot(terms: Iterable[Term]) -> Mapping[str, tuple[Term, ...]]:
    slots: dict[str, list[Term]] = {}
    for term in terms:
        slots.setdefault(term.slot, []).append(term)
    return {slot: tuple(terms) for slot, terms in slots.items()}


SLOTS: Mapping[str, tuple[Term, ...]] = _by_slot(TERMS)
ARTICLE_SLOTS: Mapping[str, tuple[Term, ...]] = _by_slot(ARTICLE_TERMS)


def select(choices: Mapping[str, str]) -> Mapping[str, Term]:
    """The term that fills each slot under these choices; a slot that does not occur is absent.

    Raises:
        LookupError: two terms claim the same slot: the catalog of terms is at fault, not the case.
    """
    return _selected(tuple(choices.items()))


@lru_cache(maxsize=1024)
def _selected(items: tuple[tuple[str, str], ...]) -> Mapping[str, Term]:
    choices, chosen = dict(items), {}
    exact = choices.get("profile", "exact") == "exact"
    for slot, terms in (SLOTS if exact else ARTICLE_SLOTS).items():
        matching = [term for term in terms if term.applies(choices)]
        if len(matching) > 1:
            raise LookupError(f"{slot}: {', '.join(term.name for term in matching)} claim the same case")
        if matching:
            chosen[slot] = matching[0]
    return chosen
