"""Reads YAML strictly: plain data only, duplicate keys refused, and an error that names file and line."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from advisor.errors import AdvisorError


def read_yaml(path: Path) -> Any:
    """The plain data in a YAML file.

    Raises:
        AdvisorError: ``broken_file`` with the file's name and line when it is not readable or repeats a key.
    """
    try:
        return parse_yaml(path.read_text(encoding="utf-8"), name=path.name)
    except (OSError, UnicodeDecodeError) as error:
        raise AdvisorError("broken_file", f"{path.name}: cannot be read ({error})") from error


def parse_yaml(text: str, *, name: str) -> Any:
    """The plain data in YAML text; ``name`` stands in for the file in error messages."""
    from advisor.catalog.yaml_text import load  # noqa: PLC0415 - read when the first file is needed, not at start-up

    return load(text, name)[0]


def parse_yaml_with_lines(text: str, *, name: str) -> tuple[Any, Mapping[tuple[str | int, ...], int]]:
    """The plain data in YAML text, and the line (from 1) at which each key or item stands, by its path."""
    from advisor.catalog.yaml_text import load  # noqa: PLC0415 - as above

    return load(text, name)


def catalog_folder() -> Path:
    """Where the catalog's files lie."""
    return Path(__file__).parent


@cache
def read_catalog_file(name: str) -> Any:
    """One file of the catalog, read once: ``"devices/h100-sxm-80gb.yaml"``."""
    return read_yaml(catalog_folder() / name)


def entry_ids(kind: str) -> tuple[str, ...]:
    """The ids of a kind that is kept as a folder (devices, models), in alphabetical order."""
    return tuple(sorted(path.stem for path in (catalog_folder() / kind).glob("*.yaml")))


def normalised(name: str) -> str:
    """A name without case and separators: ``"Llama 3.1-70B"`` and ``"llama-3.1-70b"`` are the same."""
    return "".join(character for character in name.lower() if character.isalnum() or character == ".")
