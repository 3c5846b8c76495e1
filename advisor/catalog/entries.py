"""What the catalog knows, as entries that a host can list, and the version of all its files together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

from advisor.catalog.reader import catalog_folder, entry_ids, normalised, read_catalog_file
from advisor.errors import unknown_name
from advisor.types.answers import CatalogEntry

_LABELS: Final = {"title", "name", "aliases", "checked_on", "source", "sources"}


def list_entries(kind: str | None = None, query: str | None = None) -> tuple[CatalogEntry, ...]:
    """The entries of a kind, or of all kinds, whose id, title or alias holds ``query``.

    Raises:
        AdvisorError: ``unknown_kind`` with the kinds there are.
    """
    if kind is not None and kind not in _KINDS:
        raise unknown_name("kind", kind, KINDS, pointer="/kind")
    kinds = KINDS if kind is None else (kind,)
    wanted = normalised(query or "")
    if (query or "").strip() and not wanted:  # of signs only, which no name is told apart by
        return ()
    return tuple(entry for name in kinds for entry in _KINDS[name]() if _matches(entry, wanted))


@cache
def catalog_version() -> str:
    """A short hash over every file of the catalog: two answers with the same one used the same facts."""
    folder = catalog_folder()
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.yaml")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _matches(entry: CatalogEntry, wanted: str) -> bool:
    return any(wanted in normalised(text) for text in (entry.id, entry.title, *entry.aliases))


def _folder(kind: str) -> Iterable[CatalogEntry]:
    return (_entry(kind, name, read_catalog_file(f"{kind}/{name}.yaml")) for name in entry_ids(kind))


def _file(kind: str) -> Iterable[CatalogEntry]:
    return (_entry(kind, name, entry) for name, entry in read_catalog_file(f"{kind}.yaml").items())


def _precisions() -> Iterable[CatalogEntry]:
    for framework, group in read_catalog_file("recipes.yaml").items():
        for precision, recipe in group["precisions"].items():
            entry = {**group["shared"], **recipe, "title": f"{precision} in {framework}"}
            yield _entry("precisions", f"{framework}/{precision}", entry)


def _entry(kind: str, name: str, entry: Mapping[str, Any]) -> CatalogEntry:
    return CatalogEntry(
        id=name,
        kind=kind,
        title=str(entry.get("title") or entry.get("name") or name),
        aliases=tuple(str(alias) for alias in entry.get("aliases", ())),
        facts={key: _plain(value) for key, value in entry.items() if key not in _LABELS},
        sources=tuple(sorted({_citation(source) for source in _found(entry, "source")})),
        checked_on=max((str(day) for day in _found(entry, "checked_on")), default=""),
    )


def _citation(source: Any) -> str:
    """A key of sources.yaml, or the address of a source that an entry writes out."""
    return str(source.get("url") or source.get("title")) if isinstance(source, Mapping) else str(source)


def _plain(value: Any) -> Any:
    """A value as JSON has it: dates as text, and an amount as its number and unit (its source is the entry's)."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items() if key not in ("source", "checked_on")}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _found(value: Any, key: str) -> Iterable[Any]:
    """Everything that stands under ``key``, or under its plural, at any depth."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            if name in (key, f"{key}s"):
                yield from part if isinstance(part, list) else (part,)
            else:
                yield from _found(part, key)
    elif isinstance(value, list):
        for part in value:
            yield from _found(part, key)


_KINDS: Final[Mapping[str, Callable[[], Iterable[CatalogEntry]]]] = {
    "devices": lambda: _folder("devices"),
    "models": lambda: _folder("models"),
    "optimizers": lambda: _file("optimizers"),
    "precisions": _precisions,
    "frameworks": lambda: _file("frameworks"),
    "sources": lambda: _file("sources"),
}

#: The kinds of entries, in the order in which they are listed.
KINDS: Final = tuple(_KINDS)
