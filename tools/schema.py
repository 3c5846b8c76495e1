"""JSON Schemas that every host can read: inlined, without unions, without noise.

Hosts differ in what they accept: several refuse ``$ref`` or any of ``anyOf``, ``oneOf`` and ``allOf`` in a tool's
arguments. So references are inlined, and a nullable value is written as its plain type.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pydantic import BaseModel

Schema = dict[str, Any]

FORBIDDEN_IN_INPUTS: Final = ("$ref", "$defs", "anyOf", "oneOf", "allOf")
READING: Final = "An absent argument and null are the same. Integers may be written '8k', '128K', '1M'."


def input_schema(model: type[BaseModel]) -> Schema:
    """The schema of a tool's arguments. A nested case is shown as a plain object: its table stands in one tool only."""
    raw = model.model_json_schema()
    properties = {name: _argument(field) for name, field in raw["properties"].items()}
    required = {"required": raw["required"]} if raw.get("required") else {}
    return {
        "type": "object",
        "description": READING,
        "properties": properties,
        **required,
        "additionalProperties": False,
    }


def with_null(schema: Schema) -> Schema:
    """The same arguments, where null is said to be accepted: for OpenAPI, whose readers know lists of types."""
    needed = schema.get("required", ())
    properties = {name: field if name in needed else _or_null(field) for name, field in schema["properties"].items()}
    return {**schema, "properties": properties}


def output_schema(model: type[BaseModel]) -> Schema:
    """The schema of a tool's answer, as it is serialised."""
    raw = model.model_json_schema(mode="serialization", by_alias=True)
    return _answer(raw, raw.get("$defs", {}))


def forbidden(schema: object, at: str = "") -> Iterator[str]:
    """Pointers of what an input schema must not hold."""
    if isinstance(schema, Mapping):
        for key, value in schema.items():
            if key in FORBIDDEN_IN_INPUTS:
                yield f"{at}/{key}"
            yield from forbidden(value, f"{at}/{key}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            yield from forbidden(value, f"{at}/{index}")


def _argument(field: Mapping[str, Any]) -> Schema:
    """One argument: the option that is not null, without title, default and text lengths."""
    option: Schema = next((item for item in field.get("anyOf", ()) if item.get("type") != "null"), {})
    merged = {**option, **{key: value for key, value in field.items() if key != "anyOf"}}
    if "$ref" in merged:
        merged = {"type": "object", "description": merged.get("description", "")}
    if "items" in merged:
        merged["items"] = _argument(merged["items"])
    return {key: value for key, value in merged.items() if key not in {"title", "default", "maxLength", "maxItems"}}


def _or_null(field: Schema) -> Schema:
    choices = {"enum": [*field["enum"], None]} if "enum" in field else {}
    return {**field, **choices, "type": [*_as_list(field["type"]), "null"]}


def _answer(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> Schema:
    """A node with references inlined, unions of plain types merged, titles and class docstrings dropped."""
    if "$ref" in node:
        target = definitions[node["$ref"].rsplit("/", 1)[-1]]
        node = {**target, "description": node.get("description", ""), **{k: v for k, v in node.items() if k != "$ref"}}
    if "anyOf" in node:
        node = _union([_answer(option, definitions) for option in node["anyOf"]], node)
    kept = {key: value for key, value in node.items() if key not in {"title", "$defs", "default"}}
    if "properties" in kept:
        kept["properties"] = {name: _answer(item, definitions) for name, item in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), Mapping):
            kept[key] = _answer(kept[key], definitions)
    return {key: value for key, value in kept.items() if (key, value) != ("description", "")}


def _union(options: list[Schema], node: Mapping[str, Any]) -> Schema:
    """Plain types, at most one of them with further keywords, as one list of types."""
    types = [kind for option in options for kind in _as_list(option.get("type", []))]
    merged = {key: value for option in options for key, value in option.items() if key != "type"}
    if "enum" in merged and "null" in types:
        merged["enum"] = [*merged["enum"], None]
    return {**merged, **{key: value for key, value in node.items() if key != "anyOf"}, "type": types}


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
