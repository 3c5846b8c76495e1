"""Answers kept by the server: the same question is not computed twice, and only what is whole and current is kept."""

import anyio
import pytest
from starlette.testclient import TestClient

from tools import find_tool
from tools.http_door import build_app
from tools.web.metrics import Metrics
from tools.workers import kept
from tools.workers.kept import KeepingRunner
from tools.workers.runner import Sent

DEVICES = {"kind": "devices", "query": "h100"}
TOOL = find_tool("list_catalog")


class Counting:
    """A runner that says how often it was asked."""

    time_limit_s = 1.0

    def __init__(self, *, whole=True, edition="a"):
        self.asked, self.whole, self.edition = 0, whole, edition

    async def reply(self, *_, **__):
        self.asked += 1
        return Sent("text", "x" * 1000, self.whole)


def ask(runner, arguments, *, allow_paths=False):
    async def reply():
        return await runner.reply(TOOL, arguments, allow_paths=allow_paths)

    return anyio.run(reply)


def keeping(computing, most_bytes=kept.MOST_BYTES):
    return KeepingRunner(computing, Metrics(), most_bytes)


def test_the_same_question_is_computed_once_whatever_the_order_of_its_arguments():
    computing = Counting()
    runner = keeping(computing)
    assert ask(runner, DEVICES) == ask(runner, dict(reversed(DEVICES.items())))
    assert computing.asked == 1
    ask(runner, {**DEVICES, "query": "h200"})
    assert computing.asked == 2
    assert runner.metrics.calls["list_catalog", "kept"] == 1


@pytest.mark.parametrize("computing", [Counting(whole=False), Counting()])
def test_what_a_budget_cut_short_and_what_may_read_files_is_not_kept(computing):
    runner = keeping(computing)
    for _ in range(2):
        ask(runner, DEVICES, allow_paths=computing.whole)
    assert (computing.asked, runner.count, runner.bytes) == (2, 0, 0)


def test_another_edition_answers_again():
    computing = Counting()
    runner = keeping(computing)
    ask(runner, DEVICES)
    computing.edition = "b"
    ask(runner, DEVICES)
    assert computing.asked == 2


def test_the_answer_that_was_asked_for_longest_ago_makes_room(monkeypatch):
    monkeypatch.setattr(kept, "LARGEST_SHARE", 1)
    computing = Counting()
    size = kept._size(Sent("text", "x" * 1000))
    runner = keeping(computing, 2 * size)
    for query in ("a", "b", "a", "c"):  # b makes room for c
        ask(runner, {"query": query})
    assert (computing.asked, runner.count, runner.bytes) == (3, 2, 2 * size)
    ask(runner, {"query": "a"})
    assert computing.asked == 3
    ask(runner, {"query": "b"})
    assert computing.asked == 4


def test_a_number_of_answers_bounds_what_is_kept_too(monkeypatch):
    monkeypatch.setattr(kept, "MOST_ANSWERS", 3)
    runner = keeping(Counting())
    for number in range(5):
        ask(runner, {"query": str(number)})
    assert runner.count == 3


@pytest.mark.parametrize("most_bytes", [0, 5000])
def test_an_answer_too_large_for_what_is_kept_is_left_out(most_bytes):
    runner = keeping(Counting(), most_bytes)
    ask(runner, DEVICES)
    assert runner.count == 0


def test_a_kept_answer_is_the_computed_one_on_both_surfaces():
    call = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_catalog", "arguments": DEVICES},
    }  # fmt: skip
    accept = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}
    with TestClient(build_app(), base_url="http://127.0.0.1:8321") as http:
        first, second = (http.post("/v1/list-catalog", json=DEVICES) for _ in range(2))
        by_mcp = http.post("/mcp", json=call, headers=accept)
        counted = http.get("/metrics").text
    assert (first.content, first.headers["inputs-hash"]) == (second.content, second.headers["inputs-hash"])
    assert first.json()["total"] == second.json()["total"] > 0
    assert by_mcp.status_code == 200
    assert 'trainfit_calls_total{tool="list_catalog",outcome="kept"} 2' in counted


def test_a_refusal_is_said_again_each_time():
    http = TestClient(build_app())
    answers = [http.post("/v1/list-catalog", json={"kind": "device"}) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert "trainfit_kept_answers 0" in http.get("/metrics").text


def test_a_search_cut_short_is_not_kept():
    case = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}
    sweep = {"case": case, "vary": {"sequence_length": [1024, 2048]}}
    http = TestClient(build_app(budget_s=1e-9))
    assert not http.post("/v1/explore", json=sweep).json()["complete"]
    assert "trainfit_kept_answers 0" in http.get("/metrics").text
