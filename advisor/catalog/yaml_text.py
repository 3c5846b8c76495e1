"""YAML text to plain data by libyaml, with the words of YAML 1.2, no key twice, and errors that name the line."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import yaml

from advisor.errors import AdvisorError

Path = tuple[str | int, ...]
Lines = Mapping[Path, int]


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Plain data only. Only ``true`` and ``false`` are truth values: ``on``, ``off``, ``yes`` and ``no`` are words."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """A mapping, refused where it repeats a key."""
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f'found duplicate key "{key}"', key_node.start_mark)
            seen.add(key)
        mapping: dict[Hashable, Any] = super().construct_mapping(node, deep)
        return mapping


def _whole(loader: Loader, node: yaml.ScalarNode) -> int:
    """A decimal whole number; leading zeros mean nothing."""
    return int(loader.construct_scalar(node).replace("_", ""))


def _resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """What a bare word may be, by its first character."""
    kinds = (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("null", r"~|null|Null|NULL|", ("~", "n", "N", "")),
        ("int", r"[-+]?[0-9][0-9_]*", "-+0123456789"),
        ("float", r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?|[-+]?\.[0-9]+|[-+]?\.inf|\.nan", "-+0123456789."),
        ("timestamp", r"[0-9]{4}-[0-9]{2}-[0-9]{2}", "0123456789"),
    )
    found: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    for kind, pattern, first in kinds:
        for character in first:
            found.setdefault(character, []).append((f"tag:yaml.org,2002:{kind}", re.compile(rf"^(?:{pattern})$")))
    return found


Loader.yaml_implicit_resolvers = _resolvers()
Loader.add_constructor("tag:yaml.org,2002:int", _whole)


def load(text: str, name: str) -> tuple[Any, Lines]:
    """The plain data in YAML text, and the line (from 1) at which each key or item stands, by its path.

    Raises:
        AdvisorError: ``broken_file`` with the name and the line when the text is not readable or repeats a key.
    """
    loader = None
    try:
        loader = Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None, {(): 1}
        lines: dict[Path, int] = {(): 1}
        _note(loader, node, (), lines)
        return loader.construct_document(node), lines
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = " ".join(str(getattr(error, "problem", None) or getattr(error, "context", None) or error).split())
        raise AdvisorError("broken_file", f"{name}{line}: {problem}") from error
    finally:
        if loader is not None:
            loader.dispose()


def _note(loader: Loader, node: yaml.Node, path: Path, lines: dict[Path, int]) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _note_at(loader, value, (*path, key.value), key.start_mark.line + 1, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            _note_at(loader, item, (*path, index), item.start_mark.line + 1, lines)


def _note_at(loader: Loader, node: yaml.Node, path: Path, line: int, lines: dict[Path, int]) -> None:
    lines[path] = line
    _note(loader, node, path, lines)
