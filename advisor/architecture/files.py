"""Reads a config.json from the caller's own machine: bounded, plain JSON, one clear error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NoReturn

from advisor import units
from advisor.architecture.config import read_config
from advisor.errors import AdvisorError
from advisor.types import ModelArchitecture

_LARGEST_FILE = units.MIB


def looks_like_path(name: str, *, allow_paths: bool) -> bool:
    """Whether a model's name is meant as a path; the disk is looked at only where paths are allowed."""
    if name.endswith(".json") or name.startswith(("/", "./", "../", "~")) or name == ".":
        return True
    if not allow_paths or "\0" in name:
        return False
    try:
        return Path(name).exists()
    except OSError:  # a name too long for the file system names no file
        return False


def read_config_file(name: str, *, allow_paths: bool) -> ModelArchitecture:
    """The architecture in a config.json, or in the config.json of a folder.

    Raises:
        AdvisorError: ``path_not_allowed`` where the request came from another machine, ``unreadable_file`` and
            ``broken_file`` for what the disk gives, and whatever the config itself is refused for.
    """
    if not allow_paths:
        detail = f"{name[:120]!r} is a path, and paths are read only on your own machine; send the file as hf_config"
        raise AdvisorError("path_not_allowed", detail, pointer="/model")
    path = Path(name).expanduser()
    path = path / "config.json" if path.is_dir() else path
    config = _parsed(path, _text(path))
    return read_config(config, name=path.parent.name or path.stem, source=f"config {path.name}", pointer="/model")


def _text(path: Path) -> str:
    try:
        with path.open("rb") as stream:
            content = stream.read(_LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a usable path"
        raise AdvisorError("unreadable_file", f"{path}: {reason}", pointer="/model") from error
    if len(content) > _LARGEST_FILE:
        detail = f"{path}: larger than {_LARGEST_FILE:,} bytes; accepted: a model's config.json"
        raise AdvisorError("unreadable_file", detail, pointer="/model")
    return content.decode("utf-8", errors="replace")


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        config = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0][:120]
        raise AdvisorError("broken_file", f"{path}: not plain JSON ({reason})", pointer="/model") from error
    if not isinstance(config, dict):
        raise AdvisorError("broken_file", f"{path}: accepted: a JSON object", pointer="/model")
    return config


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no number")
