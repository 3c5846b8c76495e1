"""Many clients at once: latency, throughput beside a route that answers from memory, and a worker killed meanwhile."""

import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.peers.running import Running, post, wait_until_ready

CLIENTS = 32
PATH = "/v1/estimate-memory"
CASE = {"model": "llama-3-8b", "hardware": "1x8 H100-80GB", "framework": "fsdp2"}
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


def client(running: Running, until: float) -> tuple[list[float], int]:
    """Seconds of each answered call, and how many were not answered."""
    connection, spent, failed = running.connection(), [], 0
    while time.monotonic() < until:
        start = time.perf_counter()
        try:
            status, _ = post(connection, PATH, CASE, {})
        except OSError:
            connection, status = running.connection(), 0
        if status == 200:
            spent.append(time.perf_counter() - start)
        else:
            failed += 1
    return spent, failed


def loaded(running: Running, seconds: float) -> tuple[list[float], int]:
    until = time.monotonic() + seconds
    with ThreadPoolExecutor(CLIENTS) as threads:
        parts = list(threads.map(lambda _: client(running, until), range(CLIENTS)))
    return sorted(each for spent, _ in parts for each in spent), sum(failed for _, failed in parts)


def load(running: Running, folder: Path, seconds: float) -> dict[str, str]:
    """Figures of a steady load, of one with a worker killed in the middle, and of the bar."""
    before = running.resident_mib()
    spent, failed = loaded(running, seconds)
    assert not failed, f"{failed} calls failed"
    victim = running.workers()[0]
    killer = threading.Timer(seconds / 3, os.kill, (victim, signal.SIGKILL))
    killer.start()
    during, lost = loaded(running, seconds)
    ratio = len(spent) / len(bar(running, folder, seconds))
    p50, p99 = statistics.median(spent), spent[int(len(spent) * 0.99)]
    return {
        f"load, {CLIENTS} clients, 2 workers": f"{len(spent) / seconds:,.0f} estimates/s, p50 {p50 * 1e3:.0f} ms, "
        f"p99 {p99 * 1e3:.0f} ms ({p99 / p50:.1f} times p50), no failure in {len(spent):,}",
        "the same beside FastAPI answering from memory": f"{ratio:.2f} of its requests/s",
        "a worker killed under that load": f"{lost} of {len(during) + lost:,} calls failed; replaced: "
        f"{victim not in running.workers() and len(running.workers()) == 2}",
        "memory of a worker": f"{before} MiB before the load, {running.resident_mib()} MiB after",
    }


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
            return loaded(other, seconds)[0]
        finally:
            process.terminate()
