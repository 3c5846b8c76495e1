"""Files of facts: read whole, refused in one sentence when they are not what a kind expects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: Where the project keeps its own copies: one file a kind, ``<kind>.json``, or several, ``<kind>_<part>.json``.
OWN_FOLDER = Path(__file__).parent.parent / "data"
SUFFIXES = (".json", ".yaml")


class BadCallError(Exception):
    """What was asked for is not there, or is not what it is taken for."""


def read_facts(path: Path, *required: str) -> dict[str, Any]:
    """The JSON object in a file, which must hold an object with something in it under each required name.

    Raises:
        BadCallError: the file cannot be read, is no JSON object, or lacks a required name.
    """
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadCallError(f"{path} is not a file that can be read: {error.strerror}") from error
    except ValueError as error:
        raise BadCallError(f"{path} is not JSON: {str(error).splitlines()[0]}") from error
    if not isinstance(facts, dict):
        raise BadCallError(f"{path} holds no JSON object")
    absent = [name for name in required if not (isinstance(facts.get(name), dict) and facts[name])]
    if absent:
        raise BadCallError(
            f"{path} has no {' and no '.join(map(repr, absent))}; this kind needs {' and '.join(required)}"
        )
    return facts


def fact(row: Mapping[str, Any], name: str, where: str) -> Any:
    """What a row says under a name.

    Raises:
        BadCallError: the row says nothing there.
    """
    if name not in row:
        raise BadCallError(f"{where} has no {name!r}")
    return row[name]


def own_files(kind: str) -> tuple[Path, ...]:
    """The project's own copies of a kind's facts."""
    files = (path for path in OWN_FOLDER.iterdir() if path.suffix in SUFFIXES)
    return tuple(sorted(path for path in files if path.stem == kind or path.stem.startswith(f"{kind}_")))
