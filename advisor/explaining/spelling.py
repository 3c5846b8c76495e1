"""Text → the words that can tell entries apart, in one spelling each, whether it is English or Chinese.

Chinese is put into English word by word, longest match first; then words that belong together become one, spellings
that mean the same become the same, and endings go. The lists are in the catalog: ``knowledge/words.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from advisor.catalog.reader import read_catalog_file

_WORD = re.compile(r"[a-z0-9][a-z0-9_.]*|[\u4e00-\u9fff]+")
_TIMES = re.compile(r"^(\d+)x$")
_DEVICES = re.compile(r"(?<![a-z0-9])(\d+)\s*x\s*(?=[a-z]+\d{2,4})")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
LONGEST_CHINESE, SHORTEST_STEM = 8, 3


@dataclass(frozen=True)
class Lists:
    """What is known of words: Chinese ones in English, phrases, spellings, our subject, and what tells nothing."""

    chinese: Mapping[str, str]
    phrases: Mapping[str, str]
    phrase: re.Pattern[str]
    same: Mapping[str, str]
    subject: frozenset[str]
    ignored: frozenset[str]


@cache
def lists() -> Lists:
    """The catalog's lists, read once."""
    read = read_catalog_file("knowledge/words.yaml")
    longest_first = sorted(read["phrases"], key=len, reverse=True)
    return Lists(
        chinese={word: english or "" for word, english in read["chinese"].items()},
        phrases=read["phrases"],
        phrase=re.compile(rf"(?<![a-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![a-z0-9])"),
        same=read["same"],
        subject=frozenset(map(stem, read["subject"].split())),
        ignored=frozenset(map(stem, read["ignored"].split())),
    )


def words(text: str) -> Iterator[str]:
    """The telling words of a text, in order; what no list knows stays as it is."""
    known = lists()
    plain = _phrased(_DEVICES.sub(r"\1 gpus ", text.lower()).replace("-", " ").replace(":", " "))
    english = _CHINESE.sub(lambda run: f" {_english(run[0])} ", plain).replace("-", " ")
    for found in _WORD.findall(_phrased(" ".join(english.split()))):
        word = _TIMES.sub(r"\1", found.strip("._"))
        for part in known.same.get(word, word).split():
            stemmed = stem(part)
            if stemmed not in known.ignored and not (stemmed.endswith("ly") and part not in known.same):
                yield stemmed


def stem(word: str) -> str:
    """A word without the commonest English endings."""
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > SHORTEST_STEM else word


def _phrased(text: str) -> str:
    """A text with words that mean something together put as one."""
    known = lists()
    return known.phrase.sub(lambda match: known.phrases[match[0]], text)


def _english(run: str) -> str:
    """Chinese in English; of what the list does not hold, single characters go, for they tell nothing."""
    chinese, place, english, left = lists().chinese, 0, [], ""
    while place < len(run):
        sizes = range(min(LONGEST_CHINESE, len(run) - place), 0, -1)
        size = next((size for size in sizes if run[place : place + size] in chinese), 0)
        if size:
            english += [left if len(left) > 1 else "", chinese[run[place : place + size]]]
            left = ""
        else:
            left += run[place]
        place += size or 1
    return " ".join([*english, left if len(left) > 1 else ""])
