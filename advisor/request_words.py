"""Says what an argument accepts, from the JSON Schema of its model: errors cannot drift from the validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = Mapping[str, Any]

_BOUNDS: Final = {
    "minimum": "of at least",
    "exclusiveMinimum": "above",
    "maximum": "of at most",
    "exclusiveMaximum": "below",
}
_PYDANTIC_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "max_length": "maxItems",
}


def field_schema(model: type[BaseModel], path: Sequence[int | str]) -> Schema:
    """The schema of the value at ``path`` inside a request, with a possible null set aside; empty when unknown."""
    root = _model_schema(model)
    schema: Schema = root
    for part in path:
        inside = schema.get("items", {}) if isinstance(part, int) else schema.get("properties", {}).get(part, {})
        schema = _resolved(inside, root)
    return schema


def with_bounds(schema: Schema, context: Mapping[str, Any]) -> Schema:
    """The schema with the bound that a validation error names, which a schema of a custom reader leaves out."""
    return {**{key: context[short] for short, key in _PYDANTIC_BOUNDS.items() if short in context}, **schema}


def choices(schema: Schema) -> tuple[str, ...]:
    """The values of an enumeration; empty for any other schema."""
    return tuple(str(choice) for choice in schema.get("enum", ()))


def accepted(schema: Schema) -> str:
    """What a schema accepts, in words: ``"an integer from 0 to 3"``."""
    if choices(schema):
        return ", ".join(choices(schema))
    kind = schema.get("type", "")
    if kind in {"integer", "number"}:
        return _number(schema)
    if kind == "string":
        return f"text of at most {schema['maxLength']:,} characters" if "maxLength" in schema else "text"
    if kind == "array":
        most = f"at most {schema['maxItems']:,} items, " if "maxItems" in schema else ""
        return f"a list: {most}each {accepted(schema.get('items', {}))}"
    return {"boolean": "true or false", "object": "an object"}.get(kind, "a value")


def shown(value: Any, *, longest: int = 60) -> str:
    """A given value as an error quotes it: short, and never more than a glimpse of something big."""
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list | tuple):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        value = value if len(value) <= longest else value[:longest] + "…"
    return repr(value)


@cache
def _model_schema(model: type[BaseModel]) -> Schema:
    return model.model_json_schema()


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema behind a reference or beside a null."""
    for option in schema.get("anyOf", ()):
        if option.get("type") != "null":
            return _resolved(option, root)
    if "$ref" in schema:
        found: Schema = root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
        return found
    return schema


def _number(schema: Schema) -> str:
    noun = "an integer" if schema["type"] == "integer" else "a number"
    if "minimum" in schema and "maximum" in schema:
        return f"{noun} from {schema['minimum']:,} to {schema['maximum']:,}"
    bounds = [f"{words} {schema[key]:,}" for key, words in _BOUNDS.items() if key in schema]
    return f"{noun} {' and '.join(bounds)}" if bounds else noun
