"""A question in words → the entries that answer it, by BM25; a question that none answers is told apart.

An entry is held to speak of everything that a question names of our subject, and preferred when called by its name. See
docs/decisions for why this is some lines of our own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from advisor.explaining.entries import Entry, entries
from advisor.explaining.spelling import lists, words

#: Robertson and Zaragoza 2009: how fast repetition saturates, and how much a long entry is held back.
SATURATION, LENGTH = 1.2, 0.75
#: What the best entry must speak of to answer: such a share of the question, and so much at all.
ENOUGH = ((0.3, 3.4), (0.5, 2.0), (0.75, 0.0))
#: Less is enough of an entry called by its name; more is needed where a question names nothing of our subject.
NAMED, ELSEWHERE = (0.3, 2.0), (0.6, 8.0)
#: What a word weighs that no entry holds: little, for people ask in words of their own.
UNKNOWN = 1.5
#: What is derived from code and rules answers by id; topics are written to answer questions.
DERIVED = 0.6
#: The part of a score that follows the share of our subject's words in the question that the entry speaks of.
BESIDE = 0.6
_TOPICS = ("basics", "parallel", "savings", "articles", "calculators")
_TITLE, _ASKED, _TEXT = 6, 3, 1


@dataclass(frozen=True)
class Found:
    """An entry that shares words with a question.

    Attributes:
        score: how well it answers.
        told: the weight of the question's words that it speaks of.
        share: that as a share of all of them.
        named: the question calls it by its name.
        ours: some word of the question belongs to our subject.
    """

    entry: Entry
    score: float
    told: float
    share: float
    named: bool
    ours: bool

    @property
    def answers(self) -> bool:
        """Whether the entry speaks of what was asked."""
        bars = (ELSEWHERE,) if not self.ours else (*ENOUGH, NAMED) if self.named else ENOUGH
        return any(self.share >= share and self.told >= told for share, told in bars)


def search(question: str) -> tuple[Found, ...]:
    """Entries by how well they answer, best first; only those that share a word with the question."""
    index = _index()
    asked = _Asked({word: index.rarity(word) for word in words(question)})
    found = [_found(asked, index, key) for key in index.counts if not asked.words.keys().isdisjoint(index.counts[key])]
    return tuple(sorted(found, key=lambda each: -each.score))


def _found(asked: _Asked, index: _Index, key: str) -> Found:
    entry, counts = entries()[key], index.counts[key]
    spoken = {word: weight for word, weight in asked.words.items() if word in counts}
    score = sum(weight * index.saturated(key, counts[word]) for word, weight in spoken.items())
    score *= 1.0 if entry.kind in _TOPICS else DERIVED
    score *= 1 - BESIDE + BESIDE * asked.share(spoken, asked.subject)
    named = index.names[key] <= spoken.keys()
    if named:
        score *= 1 + asked.share(index.names[key], asked.words)
    share = asked.share(spoken, asked.words)
    return Found(entry, score, sum(spoken.values()), share, named, ours=bool(asked.subject))


@dataclass(frozen=True)
class _Asked:
    """The words of a question, with how telling each is."""

    words: Mapping[str, float]

    @cached_property
    def subject(self) -> Mapping[str, float]:
        """Those that name something of our subject."""
        return {word: weight for word, weight in self.words.items() if word in lists().subject or "_" in word}

    @staticmethod
    def share(spoken: Iterable[str], of: Mapping[str, float]) -> float:
        """How much of some words is spoken of, by weight."""
        return sum(of.get(word, 0.0) for word in spoken) / (sum(of.values()) or 1.0)


@dataclass(frozen=True)
class _Index:
    """Words of every entry, and in how many topics each stands."""

    counts: Mapping[str, Counter[str]]
    names: Mapping[str, frozenset[str]]
    lengths: Mapping[str, int]
    holding: Counter[str]
    topics: int
    mean: float

    def rarity(self, word: str) -> float:
        """How telling a word is, by the topics that hold it."""
        held = self.holding[word]
        return math.log(1 + (self.topics - held + 0.5) / (held + 0.5)) if held else UNKNOWN

    def saturated(self, key: str, count: int) -> float:
        """How much a word's repetition in an entry counts."""
        length = 1 - LENGTH + LENGTH * self.lengths[key] / self.mean
        return count * (SATURATION + 1) / (count + SATURATION * length)


@cache
def _index() -> _Index:
    counts = {key: _counted(entry) for key, entry in entries().items()}
    lengths = {key: counted.total() for key, counted in counts.items()}
    topics = [key for key, entry in entries().items() if entry.kind in _TOPICS]
    holding = Counter(word for key in topics for word in counts[key])
    names = {key: frozenset(words(key)) or frozenset({key}) for key in counts}
    return _Index(counts, names, lengths, holding, len(topics), sum(lengths.values()) / len(lengths))


def _counted(entry: Entry) -> Counter[str]:
    counted: Counter[str] = Counter()
    for text, weight in ((f"{entry.title} {entry.id}", _TITLE), (entry.asked, _ASKED), (" ".join(entry.says), _TEXT)):
        for word in words(text):
            counted[word] += weight
    return counted
