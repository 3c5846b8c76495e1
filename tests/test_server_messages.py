"""What a caller is told beside the answer: from the level on that it asked for, and nothing that it did not ask for."""

import sys
import warnings
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPDeprecationWarning
from starlette.testclient import TestClient

from advisor import request
from tests.doors import mcp_over_http
from tools.http_door import build_app
from tools.mcp_door import build_server
from tools.mcp_messages import LEVELS

ROOT = Path(__file__).parent.parent
NEWER = "2026-07-28"
CUT = {
    "case": {"model": "llama-3-70b", "hardware": "64x8 H100-80GB"},
    "vary": {"micro_batch": "1..64 1", "sequence_length": "512..131072 512"},
    "budget_s": 0.01,
}
WHOLE = {"case": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}, "vary": {"micro_batch": [1, 2]}}


class Ear:
    """Remembers what a client is told."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str]] = []

    async def __call__(self, params) -> None:
        assert params.logger == "trainfit"
        self.heard.append((params.level, params.data))

    @property
    def levels(self) -> list[str]:
        return [level for level, _ in self.heard]


async def set_level(client, level):
    with warnings.catch_warnings():  # the client's method is of the older era, and says so
        warnings.simplefilter("ignore", MCPDeprecationWarning)
        return await client.set_logging_level(level)


def told(*calls, level=None, mode="legacy", target=None) -> list[str]:
    """The levels of what a client hears during some calls, with the level that its era knows."""
    ear = Ear()
    newer = {"log_level": level} if mode == NEWER else {}

    async def ask():
        async with Client(target or build_server(allow_paths=True), mode=mode, logging_callback=ear, **newer) as client:
            if mode == "legacy" and level:
                await set_level(client, level)
            for name, arguments in calls:
                await client.call_tool(name, arguments)

    anyio.run(ask)
    return ear.levels


each_era = pytest.mark.parametrize("mode", ["legacy", NEWER])


@pytest.fixture
def renamed(monkeypatch):
    monkeypatch.setitem(request.FORMER_TOOLS, "size_model", "describe_model")
    monkeypatch.setitem(request.FORMER_ARGUMENTS, "model_id", "model")


@each_era
def test_a_search_that_its_budget_ends_is_a_warning(mode):
    assert told(("explore", CUT), level="warning", mode=mode) == ["warning"]
    assert told(("explore", WHOLE), level="debug", mode=mode) == []


@each_era
@pytest.mark.usefixtures("renamed")
def test_a_former_name_is_a_notice(mode):
    calls = [("size-model", {"model-id": "70B"}), ("describe_model", {"case": {"model_id": "70B"}})]
    assert told(*calls, level="debug", mode=mode) == ["notice"] * 3
    assert told(("describe_model", {"model": "70B"}), level="debug", mode=mode) == []


@pytest.mark.usefixtures("renamed")
def test_a_notice_says_the_name_of_today():
    ear = Ear()

    async def ask():
        async with Client(build_server(allow_paths=True), mode=NEWER, logging_callback=ear, log_level="info") as client:
            await client.call_tool("describe_model", {"model_id": "70B"})

    anyio.run(ask)
    assert ear.heard == [("notice", "model_id is called model now")]


@each_era
@pytest.mark.usefixtures("renamed")
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_below_the_level_is_not_sent(level, mode):
    heard = told(("explore", CUT), ("size_model", {"model": "70B"}), level=level, mode=mode)
    assert heard == [each for each in ("warning", "notice") if LEVELS.index(each) >= LEVELS.index(level)]


@each_era
def test_who_asks_for_no_level_hears_nothing(mode):
    assert told(("explore", CUT), mode=mode) == []


def test_the_level_of_one_request_is_not_that_of_the_next():
    ear = Ear()

    async def ask():
        async with Client(build_server(allow_paths=True), mode=NEWER, logging_callback=ear) as client:
            await client.call_tool("explore", CUT, meta={"io.modelcontextprotocol/logLevel": "info"})
            await client.call_tool("explore", CUT)

    anyio.run(ask)
    assert ear.levels == ["warning"]


def test_a_level_set_on_stdio_holds_until_another_is_set():
    ear = Ear()
    process = StdioServerParameters(command=sys.executable, args=["server.py"], cwd=ROOT)

    async def ask():
        async with Client(process, mode="legacy", logging_callback=ear) as client:
            for level in ("error", "info"):
                assert (await set_level(client, level)).model_dump(exclude_none=True) == {}
                await client.call_tool("explore", CUT)

    anyio.run(ask)
    assert ear.levels == ["warning"]


def test_a_level_that_does_not_exist_is_refused():
    asked = {"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "loud"}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    with TestClient(build_app()) as http:
        assert '"code":-32602' in http.post("/mcp", json=asked, headers=headers).text


@pytest.mark.parametrize(
    ("mode", "options", "heard"), [(NEWER, {"log_level": "info"}, ["warning"]), ("legacy", {}, [])]
)
def test_over_http_a_level_holds_for_the_request_that_says_it(mode, options, heard):
    ear = Ear()

    async def ask():
        async with mcp_over_http(build_app(), [], mode=mode, logging_callback=ear, **options) as client:
            if mode == "legacy":
                assert (await set_level(client, "debug")).model_dump(exclude_none=True) == {}
            await client.list_tools()
            return await client.call_tool("explore", CUT)

    assert anyio.run(ask).structured_content["complete"] is False
    assert ear.levels == heard
