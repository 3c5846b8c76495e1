"""Precision recipes: how a framework stores weights, gradients and optimizer state, and what ZeRO divides."""

from __future__ import annotations

from functools import cache
from typing import Any

from advisor.catalog.reader import read_catalog_file
from advisor.errors import AdvisorError, nearest, unknown_name
from advisor.types.case import Recipe


def precisions_of(framework: str) -> tuple[str, ...]:
    """The precisions that the catalog has a recipe for, most usual first.

    Raises:
        AdvisorError: ``unknown_framework`` with the nearest names.
    """
    recipes = read_catalog_file("recipes.yaml")
    if framework not in recipes:
        raise unknown_name("framework", framework, recipes, pointer="/framework")
    return tuple(recipes[framework]["precisions"])


@cache
def find_recipe(framework: str, precision: str, gradient_dtype: str | None = None) -> Recipe:
    """How ``framework`` stores ``precision``, with its own gradients or those of ``gradient_dtype``.

    Raises:
        AdvisorError: ``unknown_framework``, ``unknown_precision`` or ``unknown_gradient_dtype``; each names what the
            framework accepts.
    """
    accepted = precisions_of(framework)
    if precision not in accepted:
        raise _refused("precision", precision, framework, accepted)
    group = read_catalog_file("recipes.yaml")[framework]
    entry = {**group["shared"], **group["precisions"][precision]}
    widths = dict(entry["bytes"])
    if gradient_dtype is not None:
        changes = entry["gradient_dtypes"]
        if gradient_dtype not in changes:
            raise _refused("gradient_dtype", gradient_dtype, f"{framework} with {precision}", changes)
        widths |= changes[gradient_dtype]
    return _recipe(framework, precision, entry, widths)


def _recipe(framework: str, precision: str, entry: dict[str, Any], widths: dict[str, float]) -> Recipe:
    return Recipe(
        framework=framework,
        precision=precision,
        cast_copy_bytes=entry["cast_copy"],
        gradient_buffer=entry["gradient_buffer"],
        weights_divided_from=entry["weights_divided_from"],
        gradients_divided_from=entry["gradients_divided_from"],
        optimizer_divided_from=entry["optimizer_divided_from"],
        evidence=entry["evidence"],
        source=entry["source"],
        **{f"{name}_bytes": width for name, width in widths.items()},
    )


def _refused(argument: str, given: str, by: str, accepted: Any) -> AdvisorError:
    names = tuple(accepted)
    detail = f"{by} has no {argument} {given!r}; accepted: {', '.join(names)}"
    close = nearest(given, names) or names[:3]
    return AdvisorError(f"unknown_{argument}", detail, pointer=f"/{argument}", suggestions=close)
