"""Cancelling over HTTP in the older era: by the name that the server gives, and of one's own calls only."""

import json
import threading

import anyio
import pytest
from starlette.testclient import TestClient

from tools.http_door import build_app
from tools.mcp_sessions import SESSION_HEADER
from tools.tool import Tool
from tools.workers.runner import Sent

HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


class EndlessRunner:
    """Computes for ever, and says when it began and when it was stopped."""

    time_limit_s, edition = 30.0, "test"

    def __init__(self) -> None:
        self.began, self.stopped = threading.Event(), threading.Event()

    async def reply(self, tool: Tool, arguments: object, *, allow_paths: bool) -> Sent:  # noqa: ARG002 - a runner's
        self.began.set()
        try:
            await anyio.sleep_forever()
        finally:
            self.stopped.set()


@pytest.fixture
def asked(monkeypatch):
    """A server with an endless runner, and a way to send it a message under a client's name."""
    runner = EndlessRunner()
    monkeypatch.setattr("tools.http_door.ThreadRunner", lambda *_: runner)
    with TestClient(build_app()) as http:

        def send(name, **message):
            named = {SESSION_HEADER: name} if name else {}
            return http.post("/mcp", json={"jsonrpc": "2.0", **message}, headers=HEADERS | named)

        yield runner, send


def call(send, name):
    """A call that is waited for in a thread of its own, and what it is answered."""
    answers = []
    message = {"id": 7, "method": "tools/call", "params": {"name": "list_catalog", "arguments": {}}}
    waiting = threading.Thread(target=lambda: answers.append(send(name, **message)))
    waiting.start()
    return waiting, answers


def cancel(send, name, number=7):
    assert send(name, method="notifications/cancelled", params={"requestId": number}).status_code == 202


def test_a_client_of_the_older_era_is_given_a_name_once(asked):
    _, send = asked
    first = send("", id=1, method="initialize", params=HELLO)
    assert len(first.headers[SESSION_HEADER]) == 32
    assert SESSION_HEADER not in send(first.headers[SESSION_HEADER], id=2, method="tools/list").headers


def test_a_client_of_the_newer_era_is_given_none():
    with TestClient(build_app()) as http:
        answer = http.post("/mcp", json={}, headers={"mcp-method": "tools/list"})
    assert SESSION_HEADER not in answer.headers


def test_a_cancellation_stops_the_call_and_ends_its_stream(asked):
    runner, send = asked
    waiting, answers = call(send, "anna")
    assert runner.began.wait(10)
    cancel(send, "anna")
    assert runner.stopped.wait(10)
    waiting.join(10)
    result = json.loads(answers[0].text.partition("data: ")[2])["result"]
    assert result["isError"]
    assert result["content"][0]["text"] == "the caller has cancelled the call"


@pytest.mark.parametrize(("name", "number"), [("bob", 7), ("anna", 8), ("", 7)])
def test_a_cancellation_by_another_client_or_of_another_call_stops_nothing(name, number, asked):
    runner, send = asked
    waiting, _ = call(send, "anna")
    assert runner.began.wait(10)
    cancel(send, name, number)
    assert not runner.stopped.wait(0.2)
    cancel(send, "anna")
    waiting.join(10)
