"""Text → the words that can tell entries apart, in one spelling each, whether it is English or Chinese.

Chinese is put into English word by word, longest match first, and what no list holds is cut into pairs of characters;
then words that belong together become one, spellings that mean the same become the same, and endings go. The lists are
in the catalog: ``knowledge/words.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise

from advisor.catalog.reader import read_catalog_file

_WORD = re.compile(r"[a-z0-9][a-z0-9_.]*|[\u4e00-\u9fff]+")
_TIMES = re.compile(r"(?<![a-z0-9_.])(\d+)x(?![a-z0-9_.])")
_DEVICES = re.compile(r"(?<![a-z0-9])(\d+)\s*x\s*(?=[a-z]+\d{2,4})")
_JOINED = re.compile(r"(?<![a-z0-9])(?:(tp|pp|dp|ep|cp|sp|top|rank)(\d+)|(\d+)(g|gb|gib)(?![a-z0-9]))")
_DOTTED = re.compile(r"(?<=[a-z_])\.(?=[a-z])")
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
LONGEST_CHINESE, SHORTEST_STEM, KNOWN_STEMS = 8, 3, 8192


@dataclass(frozen=True)
class Lists:
    """What is known of words: Chinese in English, phrases, spellings, our subject, a job, and what tells nothing."""

    chinese: Mapping[str, str]
    phrases: Mapping[str, str]
    phrase: re.Pattern[str]
    same: Mapping[str, str]
    subject: frozenset[str]
    settings: frozenset[str]
    ignored: frozenset[str]


@cache
def lists() -> Lists:
    """The catalog's lists, read once."""
    read = read_catalog_file("knowledge/words.yaml")
    phrases = _by_spelling(read["phrases"], "; ")
    longest_first = sorted(phrases, key=len, reverse=True)
    return Lists(
        chinese=_by_spelling(read["chinese"], " "),
        phrases=phrases,
        phrase=re.compile(rf"(?<![a-z0-9])(?:{'|'.join(map(re.escape, longest_first))})(?![a-z0-9])"),
        same=_by_spelling(read["same"], " "),
        subject=frozenset(map(stem, read["subject"].split())),
        settings=frozenset(map(stem, read["settings"].split())),
        ignored=frozenset(map(stem, read["ignored"].split())),
    )


def _by_spelling(listed: Mapping[str, str], between: str) -> Mapping[str, str]:
    """What each spelling stands for, from what is listed by that."""
    return {spelling: meant for meant, spellings in listed.items() for spelling in spellings.split(between)}


def words(text: str) -> Iterator[str]:
    """The telling words of a text, in order; what no list knows stays as it is."""
    known = lists()
    counted = _TIMES.sub(r"\1", _DEVICES.sub(r"\1 gpus ", text.lower()))
    apart = _DOTTED.sub(" ", _JOINED.sub(_apart, counted))
    plain = _phrased(apart.replace("-", " ").replace(":", " "))
    english = _CHINESE.sub(lambda run: f" {_english(run[0])} ", plain).replace("-", " ")
    for found in _WORD.findall(_phrased(" ".join(english.split()))):
        word = found.strip("._")
        for part in known.same.get(word, word).split():
            stemmed = stem(part)
            if stemmed not in known.ignored and not (stemmed.endswith("ly") and part not in known.same):
                yield stemmed


@lru_cache(maxsize=KNOWN_STEMS)
def stem(word: str) -> str:
    """A word without the commonest English endings."""
    for ending in ("ing", "ed", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= SHORTEST_STEM and not word.endswith("ss"):
            word = word.removesuffix(ending)
            break
    return word.removesuffix("e") if len(word) > SHORTEST_STEM else word


def _apart(joined: re.Match[str]) -> str:
    """A dimension and its degree, or a number and its unit, as two words: ``tp4``, ``80G``."""
    dimension, degree, size, _ = joined.groups()
    return f"{dimension} {degree}" if dimension else f"{size} gb"


def _phrased(text: str) -> str:
    """A text with words that mean something together put as one."""
    known = lists()
    return known.phrase.sub(lambda match: known.phrases[match[0]], text)


def _english(run: str) -> str:
    """Chinese in English; of what the list does not hold, each pair of characters."""
    chinese, place, english, left = lists().chinese, 0, [], ""
    while place < len(run):
        sizes = range(min(LONGEST_CHINESE, len(run) - place), 0, -1)
        size = next((size for size in sizes if run[place : place + size] in chinese), 0)
        if size:
            english += [*_pairs(left), chinese[run[place : place + size]]]
            left = ""
        else:
            left += run[place]
        place += size or 1
    return " ".join([*english, *_pairs(left)])


def _pairs(left: str) -> Iterator[str]:
    """Neighbouring characters; one alone tells nothing."""
    return map("".join, pairwise(left))
