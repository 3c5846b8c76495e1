"""What MCP hosts rely on: capabilities, order, progress, cancellation, allow-lists, next calls, small definitions."""

import sys
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from starlette.testclient import TestClient

from advisor.errors import AdvisorError
from tests.doors import by_mcp, by_python, command_line
from tools import TOOLS, allowed_tools
from tools.http_door import build_app
from tools.mcp_door import TOOLS_HEADER, build_server, definition
from tools.tool import Tool
from tools.workers.runner import Sent

ROOT = Path(__file__).parent.parent
ERAS = ("legacy", "auto")
CHARACTERS_PER_TOKEN = 4
CASE = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}
HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}

each_era = pytest.mark.parametrize("era", ERAS)


class SlowRunner:
    """Computes for ever, and remembers whether it was stopped."""

    time_limit_s, edition = 30.0, ""

    def __init__(self, seconds: float = 3600) -> None:
        self.seconds = seconds
        self.began, self.stopped = anyio.Event(), False

    async def reply(self, tool: Tool, arguments: object, *, allow_paths: bool) -> Sent:  # noqa: ARG002 - a runner's
        self.began.set()
        try:
            await anyio.sleep(self.seconds)
        except BaseException:
            self.stopped = True
            raise
        raise AdvisorError("stop", "over")


@each_era
def test_only_what_is_there_is_claimed(era):
    async def capabilities():
        async with Client(build_server(allow_paths=True), mode=era) as client:
            return client.server_capabilities

    claimed = anyio.run(capabilities)
    assert claimed.tools is not None
    assert not claimed.tools.list_changed
    assert (claimed.resources.subscribe, claimed.resources.list_changed, claimed.prompts.list_changed) == (False,) * 3
    assert claimed.completions is not None
    assert claimed.logging is not None
    assert claimed.experimental is None


@each_era
def test_tools_are_listed_in_one_order_with_everything_hosts_show(era):
    async def listed():
        async with Client(build_server(allow_paths=True), mode=era) as client:
            return [(await client.list_tools()).tools for _ in range(2)]

    first, second = anyio.run(listed)
    assert first == second
    assert [tool.name for tool in first] == [tool.name for tool in TOOLS]
    for tool in first:
        assert tool.title
        assert tool.output_schema["type"] == "object"
        assert tool.annotations.read_only_hint


@each_era
def test_a_long_tool_says_that_it_is_at_work(era, monkeypatch):
    monkeypatch.setattr("tools.mcp_door.BETWEEN_REPORTS_S", 0.01)
    heard = []

    async def remember(progress, total, message):
        heard.append((progress, total, message))

    async def call():
        server = build_server(allow_paths=True, runner=SlowRunner(0.3))
        async with Client(server, mode=era) as client:
            await client.call_tool("find_limit", {}, progress_callback=remember)

    anyio.run(call)
    assert len(heard) > 2
    assert heard == sorted(heard)
    assert heard[0][2].startswith("Find the limit of a job")


@each_era
def test_a_cancelled_call_stops_its_work(era):
    async def call():
        runner = SlowRunner()
        async with Client(build_server(allow_paths=True, runner=runner), mode=era) as client:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.call_tool, "explore", {})
                await runner.began.wait()
                tasks.cancel_scope.cancel()
            with anyio.move_on_after(5):
                while not runner.stopped:  # noqa: ASYNC110 - what is waited for is an attribute
                    await anyio.sleep(0.01)
        return runner.stopped

    assert anyio.run(call)


def test_a_caller_who_hangs_up_stops_its_work_over_json(monkeypatch):
    runner = SlowRunner()
    monkeypatch.setattr("tools.http_door.ThreadRunner", lambda *_: runner)
    app = build_app()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/explore",
        "headers": [(b"content-type", b"application/json")],
        "query_string": b"",
    }
    arriving = [{"type": "http.request", "body": b"{}"}]

    async def receive():
        if arriving:
            return arriving.pop()
        await runner.began.wait()
        return {"type": "http.disconnect"}

    async def send(_):
        pass

    anyio.run(app, scope, receive, send)
    assert runner.stopped


def test_an_allow_list_keeps_the_order_and_refuses_unknown_names():
    assert [tool.name for tool in allowed_tools("list-catalog, estimate_memory")] == ["estimate_memory", "list_catalog"]
    assert allowed_tools("") == allowed_tools(None) == TOOLS
    with pytest.raises(AdvisorError, match="did you mean 'estimate_memory'"):
        allowed_tools("estimate_memry")


def test_a_tool_that_is_not_allowed_is_neither_listed_nor_called_nor_served():
    few = allowed_tools("list_catalog")
    kind, error = by_mcp("estimate_memory", CASE, target=build_server(few, allow_paths=True))
    assert (kind, error["code"]) == ("error", "unknown_tool")
    http = TestClient(build_app(tools=few))
    assert http.post("/v1/estimate-memory", json=CASE).status_code == 404
    assert list(http.get("/v1/schemas").json()) == ["list_catalog"]
    line = '{"tool": "estimate_memory"}'
    batch = http.post("/v1/batch", content=line, headers={"content-type": "application/jsonl"})
    assert "unknown_tool" in batch.text


@pytest.mark.parametrize("how", ["flag", "environment"])
def test_the_server_is_told_which_tools_to_offer(how, monkeypatch, capsys):
    offered = []
    monkeypatch.setattr("anyio.run", lambda _, tools, *__: offered.extend(tools))
    if how == "environment":
        monkeypatch.setenv("TRAINFIT_TOOLS", "explore")
    command_line(["serve", *(["--tools", "explore"] if how == "flag" else [])], capsys)
    assert [tool.name for tool in offered] == ["explore"]


def test_a_misspelt_tool_in_the_allow_list_stops_the_server(capsys):
    code, _, said = command_line(["serve", "--tools", "explor"], capsys)
    assert code == 64
    assert "did you mean 'explore'" in said


@pytest.mark.parametrize(("header", "names"), [("explore,list_catalog", ["explore", "list_catalog"]), (None, None)])
def test_a_caller_narrows_the_tools_by_header(header, names):
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    more = {TOOLS_HEADER: header} if header else {}
    with TestClient(build_app()) as http:
        said = http.post("/mcp", json=asked, headers=HEADERS | more).text
        refused = http.post("/mcp", json=asked, headers=HEADERS | {TOOLS_HEADER: "explor"}).text
    listed = [tool.name for tool in TOOLS if f'"name":"{tool.name}"' in said]
    assert listed == (names or [tool.name for tool in TOOLS])
    assert "did you mean 'explore'" in refused


EXAMPLES = [
    pytest.param(tool.name, example, id=f"{tool.name}-{number}")
    for tool in TOOLS
    for number, example in enumerate(tool.examples)
]


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_every_example_is_answered_and_every_call_it_offers_is_too(name, example):
    kind, answer = by_python(name, dict(example))
    assert kind == "answer", answer
    for following in answer.get("next_calls", ()):
        kind, reply = by_python(following["tool"], following["arguments"])
        assert kind == "answer", reply


def test_definitions_with_names_titles_and_annotations_stay_under_six_thousand_tokens():
    """Counted as one token for four characters; output schemas are not shown to models, and are not counted."""
    shown = [
        definition(tool, "2026-07-28")
        .model_copy(update={"output_schema": None})
        .model_dump_json(by_alias=True, exclude_none=True)
        for tool in TOOLS
    ]
    assert sum(map(len, shown)) / CHARACTERS_PER_TOKEN < 6000


def test_a_summary_of_an_answer_stays_under_eight_hundred_tokens():
    for tool in TOOLS:
        if tool.name != "list_catalog":
            text = tool.reply(dict(tool.examples[0]), allow_paths=False).text
            assert len(text) / CHARACTERS_PER_TOKEN < 800, f"{tool.name}: {len(text) / CHARACTERS_PER_TOKEN:.0f}"


def test_a_real_process_offers_what_it_is_told_and_ends_with_its_host():
    process = StdioServerParameters(command=sys.executable, args=["server.py", "--tools", "list_catalog"], cwd=ROOT)

    async def listed():
        async with Client(process) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    start = time.monotonic()
    assert anyio.run(listed) == ["list_catalog"]
    assert time.monotonic() - start < 30
