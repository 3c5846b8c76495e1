"""A real server process on a port: progress and cancellation over HTTP, requests in hand when it is told to stop."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client

ROOT = Path(__file__).parent.parent
LONG = {
    "case": {"model": "llama-3-70b", "hardware": "64x8 H100-80GB"},
    "vary": {"micro_batch": "1..64 1", "sequence_length": "512..262144 512", "tensor_parallel": [1, 2, 4, 8]},
    "budget_s": 2.5,
}


class Server:
    """A process that listens on loopback, and plain requests to it."""

    def __init__(self, log: Path) -> None:
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self.port = found.getsockname()[1]
        self.log = log
        command = [sys.executable, "server.py", "--http", "--port", str(self.port), "--workers", "2"]
        with log.open("wb") as written:
            self.process = subprocess.Popen(command, cwd=ROOT, stderr=written)

    def ask(self, method: str, path: str, arguments=None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        body = None if arguments is None else json.dumps(arguments)
        connection.request(method, path, body, {"content-type": "application/json"})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, text

    def is_ready(self) -> bool:
        try:
            return self.ask("GET", "/readyz")[0] == 200
        except OSError:
            return False

    def counted(self, line: str) -> bool:
        return line in self.ask("GET", "/metrics")[1]


def wait_for(condition, *arguments):
    for _ in range(600):
        if condition(*arguments):
            return
        time.sleep(0.1)
    pytest.fail(f"{condition} {arguments} did not come true")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("server") / "log")
    try:
        wait_for(started.is_ready)
        yield started
    finally:
        started.process.kill()
        started.process.wait()


@pytest.mark.parametrize("era", ["legacy", "auto"])
def test_a_long_call_reports_over_http_that_it_is_at_work(era, server):
    heard = []

    async def remember(progress, *_):
        heard.append(progress)

    async def call():
        async with Client(f"http://127.0.0.1:{server.port}/mcp", mode=era) as client:
            return await client.call_tool("explore", LONG, progress_callback=remember)

    assert not anyio.run(call).is_error
    assert len(heard) > 1
    assert heard == sorted(heard)


def test_a_call_cancelled_over_http_stops_its_worker(server):
    async def call():
        async with Client(f"http://127.0.0.1:{server.port}/mcp") as client:
            with anyio.move_on_after(0.5):
                await client.call_tool("explore", LONG)

    anyio.run(call)
    wait_for(server.counted, 'trainfit_calls_total{tool="explore",outcome="given_up"} 1')
    wait_for(server.counted, "trainfit_workers_replaced 1")


def test_a_server_told_to_stop_answers_what_it_has_in_hand_and_ends_its_workers(server):
    wait_for(server.counted, "trainfit_workers_ready 2")
    answers = []
    asking = threading.Thread(target=lambda: answers.append(server.ask("POST", "/v1/explore", LONG)))
    asking.start()
    time.sleep(0.7)
    server.process.send_signal(signal.SIGTERM)
    asking.join(30)
    assert answers[0][0] == 200
    assert json.loads(answers[0][1])["rows"]
    server.process.wait(30)
    left = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True, check=False)
    assert left.stdout == ""
    assert "Traceback" not in server.log.read_text(encoding="utf-8")
