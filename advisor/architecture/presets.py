"""Finds a model of the catalog by its id, an alias or its Hugging Face name."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from advisor.architecture.config import read_config
from advisor.catalog.reader import catalog_folder, entry_ids, normalised, read_catalog_file
from advisor.errors import AdvisorError, unknown_name
from advisor.types import ModelArchitecture

#: Endings of names that say how a model was tuned, not what shape it has.
_VARIANT = re.compile(r"(?:[-_ ](?:instruct|chat|base|it|pt|hf))+$", re.IGNORECASE)


@lru_cache(maxsize=1024)
def find_preset(name: str) -> str | None:
    """The catalog id that a name stands for; None when the catalog does not know it.

    The ids alone are looked at first; files are opened only when no id matches, and parsed only where the name occurs.
    """
    ids = {normalised(identity): identity for identity in entry_ids("models")}
    short = normalised(_VARIANT.sub("", name.rsplit("/", 1)[-1]))
    for wanted in (normalised(name), short):
        if wanted in ids:
            return ids[wanted]
    return next((identity for identity in ids.values() if _answers_to(identity, normalised(name), short)), None)


def _answers_to(identity: str, *names: str) -> bool:
    """Whether an entry has one of the normalised names as an alias; only a file that holds it as a line is parsed."""
    text = (catalog_folder() / "models" / f"{identity}.yaml").read_text(encoding="utf-8")
    if {normalised(line) for line in text.splitlines()}.isdisjoint(names):
        return False
    return not {normalised(alias) for alias in preset_entry(identity).get("aliases", ())}.isdisjoint(names)


def preset_entry(identity: str) -> dict[str, Any]:
    """A model's catalog entry: title, aliases, config, published_parameters, sources, checked_on."""
    entry: dict[str, Any] = read_catalog_file(f"models/{identity}.yaml")
    return entry


@lru_cache(maxsize=1024)
def read_preset(identity: str) -> ModelArchitecture:
    """The architecture of a catalog entry, with the notes the entry carries."""
    entry = preset_entry(identity)
    model = read_config(entry["config"], name=identity, source="preset")
    notes = (*model.notes, *entry.get("notes", ()))
    return model.model_copy(update={"notes": notes})


def unknown_model(name: str) -> AdvisorError:
    """The error for a name that is no preset, with the nearest ids."""
    return unknown_name("model", name, entry_ids("models"), pointer="/model")
