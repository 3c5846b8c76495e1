"""What stands beside the tools over MCP: resources, prompts and completion, through the SDK's own client."""

import json
import re
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference
from starlette.testclient import TestClient

import advisor
from tests.doors import by_python
from tools import TOOLS, allowed_tools, find_tool
from tools.http_door import build_app
from tools.mcp_door import TOOLS_HEADER, build_server
from tools.prompts import PROMPTS
from tools.resources import RESOURCES
from tools.views import EXTENSION, MEDIA_TYPE, VIEWS

ROOT = Path(__file__).parent.parent
JOB = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "sequence_length": "8k"}
GIVEN = {
    "size_training_job": {**JOB, "goal": "the longest context"},
    "review_configuration": {"configuration": "--tensor-model-parallel-size 8 {odd}", "model": "llama-3-8b"},
    "explain_memory": {"question": "Why does ZeRO-3 not shrink activations?", **JOB},
}

each_era = pytest.mark.parametrize("era", ["legacy", "auto"])


def asked(method, *arguments, era="auto", tools=TOOLS, **named):
    """What the server answers to one request of a client in memory."""

    async def ask():
        async with Client(build_server(tools, allow_paths=False), mode=era) as client:
            try:
                return await getattr(client, method)(*arguments, **named)
            except MCPError as error:
                return error

    return anyio.run(ask)


def refused(method, *arguments, **named):
    error = asked(method, *arguments, **named)
    assert isinstance(error, MCPError)
    return error


def read(uri, era="auto"):
    (content,) = asked("read_resource", uri, era=era).contents
    return content


def completed(ref, name, typed, **chosen):
    completion = asked("complete", ref, {"name": name, "value": typed}, context_arguments=chosen or None).completion
    return completion.values


# --- resources --------------------------------------------------------------------------------------------------------


@each_era
def test_addresses_are_listed_with_all_that_hosts_show(era):
    single = asked("list_resources", era=era).resources
    forms = asked("list_resource_templates", era=era).resource_templates
    assert [str(each.uri) for each in single] + [each.uri_template for each in forms] == [
        *(each.uri for each in RESOURCES if not each.variables),
        *(each.uri for each in VIEWS),
        *(each.uri for each in RESOURCES if each.variables),
    ]
    assert all(each.name and each.title and each.description and each.mime_type for each in [*single, *forms])


@each_era
@pytest.mark.parametrize("uri", [each.uri for each in (*RESOURCES, *VIEWS) if "{" not in each.uri])
def test_everything_listed_can_be_read(era, uri):
    content = read(uri, era)
    assert str(content.uri) == uri
    assert len(content.text) > 100


@pytest.mark.parametrize(
    ("uri", "identity"),
    [
        ("trainfit://topic/zero", "zero"),
        ("trainfit://term/weights_dense", "term:weights_dense"),
        ("trainfit://symbol/tp", "symbol:tp"),
        ("trainfit://rule/tensor-divides-heads", "rule:tensor-divides-heads"),
        ("trainfit://article/s0-ch1.2-adamw", "s0-ch1.2-adamw"),
    ],
)
def test_a_resource_says_what_explain_says(uri, identity):
    assert read(uri).text == find_tool("explain").reply({"id": identity}, allow_paths=False).text


def test_an_entry_of_the_catalog_is_read_with_its_facts_and_sources():
    content = read("trainfit://catalog/devices/h100-80gb")
    expected = advisor.list_catalog(kind="devices", query="h100-80gb").entries[0]
    assert content.mime_type == "application/json"
    assert json.loads(content.text) == expected.model_dump(mode="json")


@pytest.mark.parametrize("uri", ["megatron/bf16_mixed", "megatron%2Fbf16_mixed"])
def test_an_id_with_a_slash_is_read_as_it_is_or_escaped(uri):
    assert json.loads(read(f"trainfit://catalog/precisions/{uri}").text)["id"] == "megatron/bf16_mixed"


def test_a_kind_is_read_whole():
    lines = read("trainfit://catalog/rules").text.splitlines()
    assert len(lines) == advisor.list_catalog(kind="rules").total


@each_era
@pytest.mark.parametrize(
    ("uri", "near"),
    [
        ("trainfit://rule/tensor-divides-head", "rule:tensor-divides-heads"),
        ("trainfit://catalog/devices/h100-80", "h100-80gb"),
        ("trainfit://catalog/device", "devices"),
        ("trainfit://trem/loss", "trainfit://term/{name}"),
        ("file:///etc/passwd", "trainfit://"),
    ],
)
def test_an_unknown_address_is_answered_with_the_nearest_name(era, uri, near):
    error = refused("read_resource", uri, era=era)
    assert error.code == -32602
    assert near in error.message
    assert error.data["uri"] == uri


# --- views ------------------------------------------------------------------------------------------------------------


@each_era
def test_a_tool_names_the_page_that_shows_its_answer(era):
    async def listed():
        async with Client(build_server(allow_paths=False), mode=era) as client:
            return client.server_capabilities.extensions, (await client.list_tools()).tools

    extensions, tools = anyio.run(listed)
    assert era == "legacy" or EXTENSION in extensions  # the older era has no place to say so
    named = {tool.name: tool.meta["ui"]["resourceUri"] for tool in tools if tool.meta}
    assert named == {"recommend_setup": VIEWS[0].uri, "estimate_memory": VIEWS[0].uri}


def test_a_page_is_whole_and_puts_nothing_into_markup():
    content = read(VIEWS[0].uri)
    assert content.mime_type == MEDIA_TYPE
    assert re.findall(r"https?:|\bsrc=|\bhref=|innerHTML|\beval\b|\bfetch\(", content.text) == []
    assert len(content.text) < 8000


def test_a_page_reads_only_what_answers_hold():
    fields = find_tool("estimate_memory").output_schema["properties"]
    (read_by_page,) = re.findall(r"const \{ ([\w, ]+) \} = answer\.estimate \?\? answer", VIEWS[0].html)
    assert [name for name in read_by_page.split(", ") if name not in fields] == []
    assert "estimate" in find_tool("recommend_setup").output_schema["properties"]


# --- prompts ----------------------------------------------------------------------------------------------------------


def prompted(name, arguments, era="auto"):
    (message,) = asked("get_prompt", name, arguments, era=era).messages
    return message.content.text


@each_era
def test_prompts_are_listed_with_the_meaning_of_their_blanks(era):
    listed = asked("list_prompts", era=era).prompts
    assert [prompt.name for prompt in listed] == ["size_training_job", "review_configuration", "explain_memory"]
    for prompt in listed:
        assert prompt.title
        assert prompt.description
        assert all(blank.description for blank in prompt.arguments)
        assert any(blank.required for blank in prompt.arguments)


@each_era
@pytest.mark.parametrize("name", GIVEN)
def test_a_prompt_holds_what_it_was_given_and_names_its_tools(era, name):
    text = prompted(name, GIVEN[name], era)
    shown = [value for key, value in GIVEN[name].items() if key != "sequence_length"]
    assert [value for value in shown if value not in text] == []
    (prompt,) = [prompt for prompt in PROMPTS if prompt.name == name]
    assert [tool.name for tool in prompt.tools if tool.name not in text] == []


@pytest.mark.parametrize("name", ["size_training_job", "explain_memory"])
def test_every_call_that_a_prompt_writes_out_is_answered(name):
    text = prompted(name, GIVEN[name])
    found = []
    for match in re.finditer(r"call (\w+) with (?=\{)", text, re.IGNORECASE):
        arguments, _ = json.JSONDecoder().raw_decode(text[match.end() :].replace("…", '"why ZeRO?"'))
        found.append((match[1], arguments))
    assert len(found) > 1
    for tool, arguments in found:
        kind, answer = by_python(tool, arguments)
        assert kind == "answer", answer


def test_what_is_left_out_of_a_prompt_leaves_no_trace():
    text = prompted("explain_memory", {"question": "What is ZeRO?", "model": " "})
    assert "{" not in text.replace('{"question": …}', "")
    assert "My job" not in text


@each_era
@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("size_trainig_job", {}, "did you mean 'size_training_job'"),
        ("size_training_job", {"model": "70B"}, "hardware is missing; give nodes x GPUs"),
        ("size_training_job", {**JOB, "modell": "70B"}, "did you mean 'model'"),
        ("explain_memory", {"question": "  "}, "question is missing"),
    ],
)
def test_a_prompt_that_cannot_be_written_is_refused_with_what_to_change(era, name, arguments, said):
    assert said in refused("get_prompt", name, arguments, era=era).message


# --- completion -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("uri", "name", "typed", "chosen", "expected"),
    [
        ("trainfit://catalog/{kind}", "kind", "dev", {}, "devices"),
        ("trainfit://catalog/{kind}/{id}", "id", "h100", {"kind": "devices"}, "h100-80gb"),
        ("trainfit://topic/{id}", "id", "formula", {}, "formula-sheet"),
        ("trainfit://rule/{id}", "id", "tensor-div", {}, "tensor-divides-heads"),
        ("trainfit://article/{id}", "id", "s0-ch1.2-ad", {}, "s0-ch1.2-adamw"),
        ("trainfit://symbol/{name}", "name", "tp", {}, "tp"),
    ],
)
def test_a_part_of_an_address_is_completed(uri, name, typed, chosen, expected):
    assert completed(ResourceTemplateReference(uri=uri), name, typed, **chosen)[0] == expected


@pytest.mark.parametrize(
    ("name", "typed", "expected"),
    [
        ("model", "LLAMA-3-7", "llama-3-70b"),
        ("hardware", "4x8 h100-8", "4x8 h100-80gb"),
        ("hardware", "rtx-409", "rtx-4090"),
        ("method", "ql", "qlora"),
    ],
)
def test_a_blank_of_a_prompt_is_completed(name, typed, expected):
    assert completed(PromptReference(name="size_training_job"), name, typed)[0] == expected


def test_free_text_and_an_id_of_no_kind_are_not_completed():
    assert completed(PromptReference(name="size_training_job"), "goal", "fast") == []
    assert completed(ResourceTemplateReference(uri="trainfit://catalog/{kind}/{id}"), "id", "h") == []


@each_era
def test_a_long_completion_says_that_there_is_more(era):
    ref = ResourceTemplateReference(uri="trainfit://article/{id}")
    completion = asked("complete", ref, {"name": "id", "value": ""}, era=era).completion
    assert (len(completion.values), completion.has_more) == (100, True)
    assert completion.total == advisor.list_catalog(kind="numbers").total


@each_era
@pytest.mark.parametrize(
    ("ref", "name", "said"),
    [
        (ResourceTemplateReference(uri="trainfit://rules/{id}"), "id", "did you mean 'trainfit://rule/{id}'"),
        (ResourceTemplateReference(uri="trainfit://rule/{id}"), "name", "accepted: id"),
        (PromptReference(name="explain"), "question", "did you mean 'explain_memory'"),
        (PromptReference(name="explain_memory"), "modle", "did you mean 'model'"),
    ],
)
def test_what_cannot_be_completed_is_refused_with_the_nearest_name(era, ref, name, said):
    assert said in refused("complete", ref, {"name": name, "value": ""}, era=era).message


# --- offered tools, and other doors -----------------------------------------------------------------------------------


def test_only_what_the_offered_tools_can_answer_is_offered():
    few = allowed_tools("list_catalog")
    assert [str(each.uri) for each in asked("list_resources", tools=few).resources] == ["trainfit://catalog"]
    assert asked("list_prompts", tools=few).prompts == []
    assert "not a known resource" in refused("read_resource", "trainfit://topic/zero", tools=few).message


def test_a_caller_who_narrows_its_tools_narrows_what_it_reads():
    request = {"jsonrpc": "2.0", "id": 1, "method": "prompts/list", "params": {}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    with TestClient(build_app()) as http:
        whole = http.post("/mcp", json=request, headers=headers).text
        few = http.post("/mcp", json=request, headers=headers | {TOOLS_HEADER: "explain,estimate_memory"}).text
    names = [prompt.name for prompt in PROMPTS]
    assert [name for name in names if name in whole] == names
    assert [name for name in names if name in few] == ["explain_memory"]


def test_a_real_process_is_read_and_prompts_over_stdio():
    async def ask():
        async with Client(StdioServerParameters(command=sys.executable, args=["server.py"], cwd=ROOT)) as client:
            (content,) = (await client.read_resource("trainfit://topic/formula-sheet")).contents
            prompt = await client.get_prompt("explain_memory", {"question": "What is ZeRO?"})
            ref = ResourceTemplateReference(uri="trainfit://topic/{id}")
            found = await client.complete(ref, {"name": "id", "value": "key"})
            return content.text, prompt.messages[0].content.text, found.completion.values

    text, prompt, values = anyio.run(ask)
    assert "16·N" in text
    assert "What is ZeRO?" in prompt
    assert values[0] == "key-numbers"


def test_nothing_that_is_read_is_loaded_before_it_is_asked_for():
    code = "import sys, server; print([name for name in sys.modules if name.startswith('advisor.explaining')])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
