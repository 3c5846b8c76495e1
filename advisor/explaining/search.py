"""A question in words → the entries that answer it; a question that none answers is told apart.

Words are weighed by BM25; an entry is held to speak of everything that a question names of our subject, and preferred
when it is asked for in much the same words. See docs/decisions for why this is some lines of our own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property

from advisor.explaining.entries import Entry, beside, entries
from advisor.explaining.live import subject
from advisor.explaining.spelling import lists, words

#: Robertson and Zaragoza 2009: how fast repetition saturates, and how much a long entry is held back.
SATURATION, LENGTH = 1.2, 0.75
#: What the best entry must speak of to answer: such a share of the question, and so much at all.
ENOUGH = ((0.3, 3.4), (0.5, 2.0), (0.75, 0.0))
#: Less is enough of an entry called by its name; more is needed where a question names nothing of our subject.
NAMED, ELSEWHERE = (0.3, 2.0), (0.6, 6.0)
#: A question so much like one that asks for the entry is the same question.
SAME = 0.6
#: What a word weighs that no entry holds: little, for people ask in words of their own.
UNKNOWN = 1.5
#: What numbers and names of models and devices weigh beside other words: they set the job, seldom the subject.
NUMBER, SETTING = 0.4, 0.5
#: What is derived from code and rules answers by id; topics are written to answer questions.
DERIVED = 0.6
#: The part of a score that follows the share of our subject's words in the question that the entry speaks of.
HELD = 0.6
#: How much more an entry counts that is called by its name, and one that is asked for in the very words.
CALLED, ALIKE = 0.3, 2.0
#: The kind of subjects near ours.
BESIDE = "beside"
_TOPICS = (BESIDE, "basics", "parallel", "savings", "articles", "calculators")
_TITLE, _ASKED, _ASKS, _TEXT = 3, 3, 1, 1


@dataclass(frozen=True)
class Found:
    """An entry that shares words with a question.

    Attributes:
        score: how well it answers.
        told: the weight of the question's words that it speaks of.
        share: that as a share of all of them.
        named: the question calls it by its name.
        ours: some word of the question belongs to our subject.
        alike: how much the question is in the words of one that asks for the entry.
    """

    entry: Entry
    score: float
    told: float
    share: float
    named: bool
    ours: bool
    alike: float

    @property
    def answers(self) -> bool:
        """Whether the entry speaks of what was asked."""
        if self.entry.kind == BESIDE:
            return False
        if self.alike >= SAME:
            return True
        bars = (ELSEWHERE,) if not self.ours else (*ENOUGH, NAMED) if self.named else ENOUGH
        return any(self.share >= share and self.told >= told for share, told in bars)


def search(question: str) -> tuple[Found, ...]:
    """Entries by how well they answer, best first; only those that share a word with the question."""
    index = _index()
    asked = _Asked({word: index.weight(word) for word in words(subject(question))})
    keys = dict.fromkeys(key for word in asked.words for key in index.holders.get(word, ()))
    return tuple(sorted((_found(asked, index, key) for key in keys), key=lambda each: -each.score))


def _found(asked: _Asked, index: _Index, key: str) -> Found:
    entry, counts = index.entries[key], index.counts[key]
    spoken = {word: weight for word, weight in asked.words.items() if word in counts}
    score = sum(weight * index.saturated(key, counts[word]) for word, weight in spoken.items())
    score *= 1.0 if entry.kind in _TOPICS else DERIVED
    score *= 1 - HELD + HELD * asked.share(spoken, asked.subject)
    alike = max((asked.likeness(ask) for ask in index.asks[key]), default=0.0)
    score *= 1 + ALIKE * alike
    named = index.names[key] <= spoken.keys()
    if named:
        score *= 1 + CALLED * asked.share(index.names[key], asked.words)
    share = asked.share(spoken, asked.words)
    return Found(entry, score, sum(spoken.values()), share, named, ours=bool(asked.subject), alike=alike)


@dataclass(frozen=True)
class _Asked:
    """The words of a question, with how telling each is."""

    words: Mapping[str, float]

    @cached_property
    def subject(self) -> Mapping[str, float]:
        """Those that name something of our subject."""
        return {word: weight for word, weight in self.words.items() if word in lists().subject or "_" in word}

    @cached_property
    def total(self) -> float:
        """What all of them weigh."""
        return sum(self.words.values())

    @staticmethod
    def share(spoken: Iterable[str], of: Mapping[str, float]) -> float:
        """How much of some words is spoken of, by weight."""
        return sum(of.get(word, 0.0) for word in spoken) / (sum(of.values()) or 1.0)

    def likeness(self, ask: Mapping[str, float]) -> float:
        """How much of both the question and another one is in the other (Dice), by weight."""
        shared = sum(weight for word, weight in self.words.items() if word in ask)
        return 2 * shared / (self.total + sum(ask.values())) if shared else 0.0


@dataclass(frozen=True)
class _Index:
    """Words of every entry and of every way to ask for it, and in how many topics each word stands."""

    entries: Mapping[str, Entry]
    counts: Mapping[str, Counter[str]]
    names: Mapping[str, frozenset[str]]
    ways: Mapping[str, tuple[tuple[str, ...], ...]]

    @cached_property
    def lengths(self) -> Mapping[str, int]:
        return {key: counted.total() for key, counted in self.counts.items()}

    @cached_property
    def mean(self) -> float:
        return sum(self.lengths.values()) / len(self.lengths)

    @cached_property
    def holders(self) -> Mapping[str, tuple[str, ...]]:
        """The entries that hold each word."""
        found: dict[str, list[str]] = {}
        for key, counted in self.counts.items():
            for word in counted:
                found.setdefault(word, []).append(key)
        return {word: tuple(keys) for word, keys in found.items()}

    @cached_property
    def asks(self) -> Mapping[str, tuple[Mapping[str, float], ...]]:
        """The weighed words of every way to ask for an entry."""
        return {
            key: tuple({word: self.weight(word) for word in way} for way in ways) for key, ways in self.ways.items()
        }

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """How telling each word of the topics is, by how many of them hold it."""
        topics = [counted for key, counted in self.counts.items() if self.entries[key].kind in _TOPICS]
        holding = Counter(word for counted in topics for word in counted)
        return {
            word: _told(word) * math.log(1 + (len(topics) - held + 0.5) / (held + 0.5))
            for word, held in holding.items()
        }

    def weight(self, word: str) -> float:
        """How telling a word is; a number that no topic holds tells nothing."""
        return self.weights.get(word, 0.0 if word[0].isdigit() else UNKNOWN)

    def saturated(self, key: str, count: int) -> float:
        """How much a word's repetition in an entry counts."""
        length = 1 - LENGTH + LENGTH * self.lengths[key] / self.mean
        return count * (SATURATION + 1) / (count + SATURATION * length)


def _told(word: str) -> float:
    """What a word tells of the subject beside one as rare that sets no job."""
    return SETTING if word in lists().settings else NUMBER if word.replace(".", "").isdigit() else 1.0


@cache
def _index() -> _Index:
    known = {**entries(), **beside()}
    ways = {key: tuple(tuple(words(subject(ask))) for ask in entry.asks) for key, entry in known.items()}
    counts = {key: _counted(entry, ways[key]) for key, entry in known.items()}
    return _Index(known, counts, {key: frozenset(words(key)) or frozenset({key}) for key in known}, ways)


def _counted(entry: Entry, ways: Iterable[tuple[str, ...]]) -> Counter[str]:
    counted: Counter[str] = Counter()
    texts = ((f"{entry.title} {entry.id}", _TITLE), (entry.asked, _ASKED), (" ".join(entry.says), _TEXT))
    for found, weight in (*((words(text), weight) for text, weight in texts), *((way, _ASKS) for way in ways)):
        for word in found:
            counted[word] += weight
    return counted
