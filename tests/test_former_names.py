"""A name that changes keeps its old spelling: on every door, for tools and for arguments, nested ones too."""

import click
import pytest
from starlette.testclient import TestClient

from advisor import request
from tests.doors import by_http, by_mcp, by_python, command_line
from tools import find_tool
from tools.cli import command_of
from tools.http_door import build_app

NOW = {"model": "qwen3-30b-a3b"}
THEN = {"model_id": "qwen3-30b-a3b"}


@pytest.fixture
def renamed(monkeypatch):
    monkeypatch.setitem(request.FORMER_TOOLS, "size_model", "describe_model")
    monkeypatch.setitem(request.FORMER_ARGUMENTS, "model_id", "model")


@pytest.mark.usefixtures("renamed")
def test_every_door_answers_by_the_former_names():
    expected = by_python("describe_model", NOW)
    assert expected[0] == "answer"
    assert by_python("size-model", THEN) == expected
    assert by_mcp("size_model", THEN) == expected
    http = TestClient(build_app())
    assert by_http("size_model", THEN, http) == expected
    assert http.post("/v1/size_model", json=THEN).status_code == 200


@pytest.mark.usefixtures("renamed")
def test_the_command_line_reads_the_former_names(capsys):
    code, out, err = command_line(["size-model", "--model", "qwen3-30b-a3b"], capsys)
    assert (code, err) == (0, "")
    assert "qwen3-30b-a3b" in out
    command = command_of(find_tool("describe_model"))
    with click.Context(command) as context:
        assert "--model-id" in next(each for each in command.get_params(context) if each.name == "model").opts


@pytest.mark.usefixtures("renamed")
def test_a_former_argument_is_read_inside_a_case_too():
    assert by_python("describe_model", {"case": THEN}) == by_python("describe_model", {"case": NOW})


@pytest.mark.usefixtures("renamed")
def test_both_spellings_at_once_are_refused():
    kind, error = by_python("describe_model", {**NOW, **THEN})
    assert (kind, error["detail"]) == ("error", "model: given twice")


@pytest.mark.usefixtures("renamed")
def test_former_names_are_not_shown():
    assert "model_id" not in find_tool("describe_model").input_schema["properties"]
    assert "size_model" not in str(build_app().openapi()["paths"])


@pytest.mark.parametrize("names", [request.FORMER_TOOLS, request.FORMER_ARGUMENTS])
def test_a_former_name_is_not_a_present_one(names):
    assert set(names).isdisjoint(names.values())
