"""Finds a model of the catalog by its id, an alias or its Hugging Face name."""

from __future__ import annotations

from typing import Any

from advisor.architecture.config import read_config
from advisor.catalog.reader import catalog_folder, entry_ids, normalised, read_catalog_file
from advisor.errors import AdvisorError, unknown_name
from advisor.types import ModelArchitecture


def find_preset(name: str) -> str | None:
    """The catalog id that a name stands for; None when the catalog does not know it.

    The ids alone are looked at first; files are opened only when no id matches, and parsed only where the name occurs.
    """
    wanted = normalised(name)
    ids = entry_ids("models")
    for identity in ids:
        if normalised(identity) == wanted:
            return identity
    return next((identity for identity in ids if wanted and _answers_to(identity, wanted)), None)


def _answers_to(identity: str, wanted: str) -> bool:
    text = (catalog_folder() / "models" / f"{identity}.yaml").read_text(encoding="utf-8")
    if wanted not in normalised(text):
        return False
    return wanted in {normalised(alias) for alias in preset_entry(identity).get("aliases", ())}


def preset_entry(identity: str) -> dict[str, Any]:
    """A model's catalog entry: title, aliases, config, published_parameters, sources, checked_on."""
    entry: dict[str, Any] = read_catalog_file(f"models/{identity}.yaml")
    return entry


def read_preset(identity: str) -> ModelArchitecture:
    """The architecture of a catalog entry, with the notes the entry carries."""
    entry = preset_entry(identity)
    model = read_config(entry["config"], name=identity, source="preset")
    notes = (*model.notes, *entry.get("notes", ()))
    return model.model_copy(update={"notes": notes})


def unknown_model(name: str) -> AdvisorError:
    """The error for a name that is no preset, with the nearest ids."""
    return unknown_name("model", name, entry_ids("models"), pointer="/model")
