"""Files of facts: read whole, refused in one sentence when they are not what a kind expects."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from advisor.catalog.reader import parse_yaml
from advisor.errors import AdvisorError

#: Where the project keeps its own copies: one file a kind, ``<kind>.json``, or several, ``<kind>_<part>.json``.
OWN_FOLDER = Path(__file__).parent.parent / "data"
NOTES = Path(__file__).with_name("notes.yaml")
SUFFIXES = (".json", ".yaml")


#: Rows of a file that PyTorch itself can count, and those that need a cluster or offload.
COUNTABLE, CLUSTER = "countable", "cluster"


class BadCallError(Exception):
    """What was asked for is not there, or is not what it is taken for."""


class NotGivenError(Exception):
    """A row does not state what decides its memory, or asks for what is not computed yet."""


def read_json(path: Path) -> Any:
    """What a JSON file holds.

    Raises:
        BadCallError: the file cannot be read or is not JSON.
    """
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise BadCallError(f"{path} is not JSON: {str(error).splitlines()[0]}") from error


def read_yaml(path: Path) -> Any:
    """What a YAML file holds.

    Raises:
        BadCallError: the file cannot be read or is not YAML.
    """
    try:
        return parse_yaml(read_text(path), name=str(path))
    except AdvisorError as error:
        raise BadCallError(f"{path} is not YAML: {error.detail}") from error


def read_text(path: Path) -> str:
    """A file's text.

    Raises:
        BadCallError: the file cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadCallError(f"{path} is not a file that can be read: {error.strerror}") from error


def read_facts(path: Path, *required: str) -> dict[str, Any]:
    """The JSON object in a file, which must hold an object with something in it under each required name.

    Raises:
        BadCallError: the file cannot be read, is no JSON object, or lacks a required name.
    """
    facts = read_json(path)
    if not isinstance(facts, dict):
        raise BadCallError(f"{path} holds no JSON object")
    absent = [name for name in required if not (isinstance(facts.get(name), dict) and facts[name])]
    if absent:
        raise BadCallError(
            f"{path} has no {' and no '.join(map(repr, absent))}; this kind needs {' and '.join(required)}"
        )
    return facts


def read_list(path: Path) -> list[Mapping[str, Any]]:
    """The rows of a file that is a JSON or YAML list, or holds one under ``rows``.

    Raises:
        BadCallError: the file cannot be read or holds no such list.
    """
    read = read_yaml if path.suffix == ".yaml" else read_json
    facts = read(path)
    rows = facts.get("rows") if isinstance(facts, dict) else facts
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise BadCallError(f"{path} holds no list of rows")
    return rows


def of_rows(
    every: Sequence[Mapping[str, Any]], kind: str | None, is_countable: Callable[[Mapping[str, Any]], bool]
) -> list[Mapping[str, Any]]:
    """All rows where ``kind`` is None, else the countable ones or the others.

    Raises:
        BadCallError: ``kind`` is neither.
    """
    if kind not in (None, COUNTABLE, CLUSTER):
        raise BadCallError(f"--rows {kind} is not known; accepted: {COUNTABLE}, {CLUSTER}")
    return [row for row in every if kind is None or is_countable(row) == (kind == COUNTABLE)]


def fact(row: Mapping[str, Any], name: str, where: str) -> Any:
    """What a row says under a name.

    Raises:
        BadCallError: the row says nothing there.
    """
    if name not in row:
        raise BadCallError(f"{where} has no {name!r}")
    return row[name]


def notes(kind: str) -> Mapping[str, str]:
    """Pattern of row names → why those rows are off, as far as it is known."""
    written: Mapping[str, Mapping[str, str]] = read_yaml(NOTES)
    return written.get(kind, {})


def own_files(kind: str) -> tuple[Path, ...]:
    """The project's own copies of a kind's facts."""
    files = (path for path in OWN_FOLDER.iterdir() if path.suffix in SUFFIXES)
    return tuple(sorted(path for path in files if path.stem == kind or path.stem.startswith(f"{kind}_")))
