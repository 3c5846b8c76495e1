"""The contract of the tools: what hosts see changes on purpose only.

``TRAINFIT_ACCEPT=1 pytest tests/test_tool_schemas.py`` rewrites the snapshots after a change that is meant.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from tools import TOOLS
from tools.mcp_door import INSTRUCTIONS, READ_ONLY, definition
from tools.schema import forbidden

SNAPSHOTS = Path(__file__).parent / "snapshots"
CHARACTERS_PER_TOKEN = 4

every_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


@every_tool
def test_a_tools_face_is_the_one_accepted(tool):
    face = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "input": tool.input_schema,
        "output": tool.output_schema,
    }
    text = json.dumps(face, indent=1, ensure_ascii=False) + "\n"
    snapshot = SNAPSHOTS / f"{tool.name}.json"
    if os.environ.get("TRAINFIT_ACCEPT") == "1":
        snapshot.write_text(text, encoding="utf-8")
    assert snapshot.read_text(encoding="utf-8") == text, (
        f"accept a change that is meant: TRAINFIT_ACCEPT=1, {snapshot.name}"
    )


def test_every_snapshot_is_of_a_tool():
    assert {path.stem for path in SNAPSHOTS.glob("*.json")} == {tool.name for tool in TOOLS}


@every_tool
def test_arguments_hold_nothing_that_hosts_refuse(tool):
    assert list(forbidden(tool.input_schema)) == []
    assert tool.input_schema["additionalProperties"] is False
    assert "title" not in tool.input_schema


@pytest.mark.parametrize("keyword", ["$ref", "$defs", "anyOf", "oneOf", "allOf"])
def test_the_check_of_arguments_finds_what_hosts_refuse(keyword):
    assert list(forbidden({"properties": {"a": [{keyword: {}}]}})) == [f"/properties/a/0/{keyword}"]


@every_tool
def test_answers_hold_no_references(tool):
    assert not [pointer for pointer in forbidden(tool.output_schema) if pointer.endswith(("$ref", "$defs"))]


@every_tool
def test_schemas_are_valid_and_examples_obey_them(tool):
    jsonschema.Draft202012Validator.check_schema(tool.output_schema)
    validator = jsonschema.Draft202012Validator(tool.input_schema)
    for example in tool.examples:
        lengths_as_numbers = {key: 8192 if value == "8k" else value for key, value in example.items()}
        validator.validate(lengths_as_numbers)


@every_tool
def test_arguments_are_those_of_the_request_model(tool):
    assert set(tool.input_schema["properties"]) == set(tool.operation.request.model_fields)


@every_tool
def test_a_description_is_one_line_then_when_to_use_it_then_an_example(tool):
    lines = tool.description.splitlines()
    assert len(lines) == 3
    assert lines[1].startswith("Use when ")
    example = json.loads(lines[2].removeprefix("Example: "))
    assert set(example) <= set(tool.input_schema["properties"])


def test_all_definitions_together_stay_under_six_thousand_tokens():
    faces = [
        tool.description + json.dumps(tool.input_schema, separators=(",", ":"), ensure_ascii=False) for tool in TOOLS
    ]
    assert sum(map(len, faces)) / CHARACTERS_PER_TOKEN < 6000


def test_hosts_are_told_that_tools_only_read():
    assert READ_ONLY.read_only_hint
    assert READ_ONLY.open_world_hint is False
    assert all(definition(tool, "2025-11-25").annotations == READ_ONLY for tool in TOOLS)


def test_instructions_fit_where_hosts_cut_them():
    assert len(INSTRUCTIONS) < 2000
