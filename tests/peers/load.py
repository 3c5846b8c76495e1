"""Many clients at once: latency, throughput beside a route that answers from memory, a worker killed, memory."""

import itertools
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.peers.running import Running, post, wait_until_ready

CLIENTS = 32
PATH = "/v1/estimate-memory"
CASE = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"}
EARLY, LATE = 5_000, 50_000
#: The bar: FastAPI alone, which returns the same answer from memory.
BAR = """
import sys, uvicorn
from fastapi import FastAPI, Request, Response
app, answer = FastAPI(), open(sys.argv[1]).read()
@app.post("/v1/estimate-memory")
async def estimate(request: Request):
    await request.json()
    return Response(answer, media_type="application/json")
@app.get("/readyz")
async def readyz():
    return {}
uvicorn.run(app, port=int(sys.argv[2]), log_level="warning")
"""

#: Whether a client asks on, asked before each of its calls.
AskOn = Callable[[], bool]


def distinct() -> Iterator[dict[str, Any]]:
    """Cases of which no two are alike, so that no answer can come from memory."""
    return map(lambda more: CASE | {"sequence_length": 1024 + more}, itertools.count())  # noqa: C417 - threads share it


def client(running: Running, cases: Iterator[dict[str, Any]], ask_on: AskOn) -> tuple[list[float], int]:
    """Seconds of each answered call, and how many were not answered."""
    connection, spent, failed = running.connection(), [], 0
    while ask_on():
        case = next(cases)
        start = time.perf_counter()
        try:
            status, _ = post(connection, PATH, case, {})
        except OSError:
            connection, status = running.connection(), 0
        if status == 200:
            spent.append(time.perf_counter() - start)
        else:
            failed += 1
    return spent, failed


def asked(running: Running, cases: Iterator[dict[str, Any]], ask_on: AskOn) -> tuple[list[float], int]:
    """The same of all clients together, the quickest call first."""
    with ThreadPoolExecutor(CLIENTS) as threads:
        parts = list(threads.map(lambda _: client(running, cases, ask_on), range(CLIENTS)))
    return sorted(each for spent, _ in parts for each in spent), sum(failed for _, failed in parts)


def for_seconds(running: Running, cases: Iterator[dict[str, Any]], seconds: float) -> tuple[list[float], int]:
    until = time.monotonic() + seconds
    return asked(running, cases, lambda: time.monotonic() < until)


def load(running: Running, folder: Path, seconds: float) -> dict[str, str]:
    """Figures of a steady load, of one with a worker killed in the middle, and of the bar."""
    steady, failed = for_seconds(running, distinct(), seconds)
    assert not failed, f"{failed} calls failed"
    repeated, failed = for_seconds(running, itertools.repeat(CASE), seconds)
    assert not failed, f"{failed} calls failed"
    limit = len(bar(running, folder, seconds))
    return {
        f"load, {CLIENTS} clients, 2 workers, no two calls alike": rates(steady, seconds),
        "the same, all calls alike": rates(repeated, seconds),
        "beside FastAPI answering from memory": f"{len(repeated) / limit:.2f} of its {limit / seconds:,.0f} requests/s "
        f"when all calls are alike, {len(steady) / limit:.2f} when no two are",
        "a worker killed under that load": killed(running, seconds),
    }


def rates(spent: list[float], seconds: float) -> str:
    p50, p99 = statistics.median(spent), spent[int(len(spent) * 0.99)]
    return (
        f"{len(spent) / seconds:,.0f} estimates/s, p50 {p50 * 1e3:.0f} ms, p99 {p99 * 1e3:.0f} ms "
        f"({p99 / p50:.1f} times p50), no failure in {len(spent):,}"
    )


def killed(running: Running, seconds: float) -> str:
    victim = running.workers()[0]
    threading.Timer(seconds / 3, os.kill, (victim, signal.SIGKILL)).start()
    during, lost = for_seconds(running, distinct(), seconds)
    replaced = victim not in running.workers() and len(running.workers()) == 2
    return f"{lost} of {len(during) + lost:,} calls failed; replaced: {replaced}"


def soak(running: Running) -> dict[str, str]:
    """Memory of a worker early and late in a long run of calls, no two alike."""
    cases = distinct()
    early = resident_after(running, cases, EARLY)
    late = resident_after(running, cases, LATE - EARLY)
    ratio = late / early
    return {
        "memory of a worker": f"{early} MiB after {EARLY:,} calls, {late} MiB after {LATE:,}: {ratio:.2f} times",
        "memory of the server": f"{running.listening_mib()} MiB after {LATE:,} calls, answers kept included",
    }


def resident_after(running: Running, cases: Iterator[dict[str, Any]], calls: int) -> int:
    left = itertools.count(calls, -1)
    _, failed = asked(running, cases, lambda: next(left) > 0)
    assert not failed, f"{failed} calls failed"
    return running.resident_mib()


def bar(running: Running, folder: Path, seconds: float) -> list[float]:
    """Seconds of each call of the route that answers from memory."""
    program, answer = folder / "bar.py", folder / "answer.json"
    program.write_text(BAR, encoding="utf-8")
    answer.write_bytes(post(running.connection(), PATH, CASE, {})[1])
    port = running.port + 1
    with subprocess.Popen([sys.executable, program, answer, str(port)]) as process:
        other = Running(port, process, running.log)
        try:
            wait_until_ready(other)
            return for_seconds(other, itertools.repeat(CASE), seconds)[0]
        finally:
            process.terminate()
