"""A question in words → the entries that answer it, by BM25; a question that none answers is told apart.

Chinese words are put into English first, longest match first, from a list in the catalog. See docs/decisions for why
this is thirty lines of our own.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from advisor.catalog.reader import entry_ids, read_catalog_file
from advisor.explaining.entries import Entry, entries

#: Robertson and Zaragoza 2009: how fast repetition saturates, and how much a long entry is held back.
SATURATION, LENGTH = 1.2, 0.5
#: Share of a question's weight that its best entry must speak of; less is another subject.
COVERED = 0.4
#: What is derived from code and rules answers by id; topics are written to answer questions.
DERIVED = 0.6
_TITLE, _ASKED, _TEXT = 3, 3, 1

_WORD = re.compile(r"[a-z0-9][a-z0-9_.]*|[\u4e00-\u9fff]+")


@dataclass(frozen=True)
class Found:
    """An entry with its score, and the share of the question's weight that it speaks of."""

    entry: Entry
    score: float
    share: float


def search(question: str) -> tuple[Found, ...]:
    """Entries by how well they answer, best first; only those that share a word with the question."""
    index = _index()
    words = list(dict.fromkeys(_words(question)))
    rarity = {word: index.rarity(word) for word in words}
    whole, topics = sum(rarity.values()) or 1.0, entry_ids("knowledge/topics")
    found = []
    for key, counts in index.counts.items():
        spoken = [word for word in words if counts[word]]
        if spoken:
            length = 1 - LENGTH + LENGTH * index.lengths[key] / index.mean
            score = sum(
                rarity[word] * counts[word] * (SATURATION + 1) / (counts[word] + SATURATION * length) for word in spoken
            )
            entry = entries()[key]
            weight = 1.0 if entry.kind in topics else DERIVED
            found.append(Found(entry, score * weight, sum(rarity[word] for word in spoken) / whole))
    return tuple(sorted(found, key=lambda each: -each.score))


@dataclass(frozen=True)
class _Index:
    counts: Mapping[str, Counter[str]]
    lengths: Mapping[str, int]
    holding: Counter[str]

    @property
    def mean(self) -> float:
        return sum(self.lengths.values()) / len(self.lengths)

    def rarity(self, word: str) -> float:
        """How telling a word is; one that no entry holds tells most, and counts against all of them."""
        held = self.holding[word]
        return math.log(1 + (len(self.counts) - held + 0.5) / (held + 0.5))


@cache
def _index() -> _Index:
    counts = {key: _counted(entry) for key, entry in entries().items()}
    holding = Counter(word for counted in counts.values() for word in counted)
    return _Index(counts, {key: counted.total() for key, counted in counts.items()}, holding)


def _counted(entry: Entry) -> Counter[str]:
    counted: Counter[str] = Counter()
    for text, weight in ((f"{entry.title} {entry.id}", _TITLE), (entry.asked, _ASKED), (" ".join(entry.says), _TEXT)):
        for word in _words(text):
            counted[word] += weight
    return counted


def _words(text: str) -> Iterator[str]:
    """The words of a text that can tell entries apart, in one spelling each."""
    lists = _lists()
    for run in _WORD.findall(text.lower().replace("-", " ").replace(":", " ")):
        for word in _english(run) if run[0] >= "\u4e00" else (run.strip("._"),):
            for part in lists["same"].get(word, word).split():
                stem = _stem(part)
                if stem and stem not in lists["ignored"]:
                    yield stem


def _english(run: str) -> Iterator[str]:
    """Chinese words as English ones; what the list does not hold stays as it is, and is rare."""
    chinese, place, left = _lists()["chinese"], 0, ""
    while place < len(run):
        size = next(
            (size for size in range(min(8, len(run) - place), 0, -1) if run[place : place + size] in chinese), 0
        )
        if size:
            yield from _flush(left)
            left = ""
            yield from chinese[run[place : place + size]].split()
        else:
            left += run[place]
        place += size or 1
    yield from _flush(left)


def _flush(left: str) -> Iterable[str]:
    return (left,) if left else ()


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):  # noqa: PLR2004 - a stem
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > 3 else word  # noqa: PLR2004


@cache
def _lists() -> Mapping[str, Any]:
    lists = read_catalog_file("knowledge/words.yaml")
    return {
        "chinese": {key: value or "" for key, value in lists["chinese"].items()},
        "same": lists["same"],
        "ignored": {_stem(word) for word in lists["ignored"].split()},
    }
