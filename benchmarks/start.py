"""From starting the process to the answer of ``initialize`` over stdio, beside a server that has nothing in it."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import Result

ROOT = Path(__file__).parent.parent
OURS = (sys.executable, str(ROOT / "server.py"))
BARE = (sys.executable, str(Path(__file__).parent / "bare_server.py"))
INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "benchmark", "version": "1"},
        },
    }
)
RUNS = 5


def initialize() -> Result:
    """Both servers in turn, so that the machine's other work weighs on both."""
    seconds_to_answer(OURS), seconds_to_answer(BARE)  # the first start compiles
    pairs = [(seconds_to_answer(OURS), seconds_to_answer(BARE)) for _ in range(RUNS)]
    ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
    return Result(
        what="start to answered initialize over stdio",
        measured=f"{ours * 1000:,.0f} ms",
        against=f"{bare * 1000:,.0f} ms for a bare server of the same SDK: {ours / bare:.2f}x",
    )


def seconds_to_answer(command: tuple[str, ...]) -> float:
    """Start the server, ask once, wait for the answer, end it."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(INITIALIZE + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        taken = time.perf_counter() - start
        server.stdin.close()
        server.wait(timeout=30)
    assert "serverInfo" in answer["result"]
    return taken
