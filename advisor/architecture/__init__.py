"""Model descriptions: from a preset, a config.json, hyper-parameters or a bare size; and their exact counts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from advisor.architecture.config import read_config
from advisor.architecture.files import looks_like_path, read_config_file
from advisor.architecture.hyper_parameters import read_hyper_parameters
from advisor.architecture.matrices import LinearShape, linear_shapes
from advisor.architecture.parameters import (
    LayerParameters,
    OuterParameters,
    count_parameters,
    layer_parameters,
    matrix_elements,
    outer_parameters,
)
from advisor.architecture.presets import find_preset, read_preset, unknown_model
from advisor.architecture.size import model_of_size, parse_size
from advisor.errors import AdvisorError
from advisor.types import ModelArchitecture

__all__ = [
    "LayerParameters",
    "LinearShape",
    "OuterParameters",
    "count_parameters",
    "layer_parameters",
    "linear_shapes",
    "matrix_elements",
    "outer_parameters",
    "resolve_model",
]


def resolve_model(
    *,
    model: str | None,
    hf_config: dict[str, Any] | None,
    architecture: dict[str, Any] | None,
    allow_paths: bool,
) -> ModelArchitecture:
    """The architecture that exactly one of the three arguments describes.

    Args:
        model: a preset name, a size ("70B") or, where paths are allowed, a config.json or a folder that holds one.
        hf_config: the object in a Hugging Face config.json.
        architecture: hyper-parameters by our short names.
        allow_paths: whether ``model`` may be a path (the caller's own machine only).

    Raises:
        AdvisorError: when none or several are given, the name is unknown, or the description is not usable.
    """
    given = {"model": model, "hf_config": hf_config, "architecture": architecture}
    present = [name for name, value in given.items() if value is not None]
    if len(present) != 1:
        raise _not_one(present)
    if model is not None:
        described = _named(model, allow_paths=allow_paths)
    elif hf_config is not None:
        described = read_config(
            _mapping(hf_config, "/hf_config"), name="hf_config", source="config", pointer="/hf_config"
        )
    else:
        described = read_hyper_parameters(_mapping(architecture, "/architecture"))
    return _countable(described, pointer=f"/{present[0]}")


def _not_one(present: list[str]) -> AdvisorError:
    if not present:
        detail = "no model is given; accepted: exactly one of model (a preset or size), hf_config, architecture"
        return AdvisorError("missing_argument", detail, pointer="/model")
    detail = f"{' and '.join(present)} are given together; accepted: exactly one of model, hf_config, architecture"
    return AdvisorError("conflicting_arguments", detail, pointer=f"/{present[1]}")


def _named(name: str, *, allow_paths: bool) -> ModelArchitecture:
    """A preset, a size or a path, in the order in which mistaking one for another is least likely."""
    size = parse_size(name)
    if size is not None:
        return model_of_size(name, size)
    preset = find_preset(name)
    if preset is not None:
        return read_preset(preset)
    if looks_like_path(name, allow_paths=allow_paths):
        return read_config_file(name, allow_paths=allow_paths)
    raise unknown_model(name[:120])


def _mapping(value: Any, pointer: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        detail = f"{pointer[1:]} is {type(value).__name__}; accepted: an object"
        raise AdvisorError("invalid_value", detail, pointer=pointer)
    return value


def _countable(model: ModelArchitecture, *, pointer: str) -> ModelArchitecture:
    """The model, unless its shapes multiply to more parameters than our arithmetic keeps exact."""
    try:
        count_parameters(model)
    except ValueError as error:  # ParameterCount is bounded; each single dimension was checked before
        detail = "the shapes multiply to more than 10^15 parameters; check layers, hidden size, widths and experts"
        raise AdvisorError("invalid_value", detail, pointer=pointer) from error
    return model
