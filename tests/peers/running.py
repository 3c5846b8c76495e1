"""A real server process for peers to talk to, and clients that keep a connection open."""

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
MCP_HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


@dataclass(frozen=True)
class Running:
    """A server that answers.

    Attributes:
        port: on loopback.
        process: the one that listens.
        log: what it writes.
    """

    port: int
    process: subprocess.Popen[bytes]
    log: Path

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def workers(self) -> list[int]:
        """The processes that compute."""
        listed = subprocess.run(
            ["pgrep", "-P", str(self.process.pid), "-f", "tools.workers.worker"],
            capture_output=True,
            text=True,
            check=False,
        )
        return [int(pid) for pid in listed.stdout.split()]

    def resident_mib(self) -> int:
        """Resident memory of the largest worker."""
        return max(map(resident_mib, self.workers()))

    def listening_mib(self) -> int:
        """Resident memory of the process that listens."""
        return resident_mib(self.process.pid)


def resident_mib(pid: int) -> int:
    listed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(listed.stdout) // 1024


@contextmanager
def server(folder: Path, *options: str) -> Iterator[Running]:
    """A server with two workers, ready to compute; ended afterwards."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    log = folder / "server.log"
    command = [sys.executable, "server.py", "--http", "--port", str(port), "--workers", "2", *options]
    with log.open("wb") as written, subprocess.Popen(command, cwd=ROOT, stderr=written) as process:
        running = Running(port, process, log)
        try:
            wait_until_ready(running)
            yield running
        finally:
            process.terminate()


def wait_until_ready(running: Running) -> None:
    for _ in range(600):
        try:
            if get(running.connection(), "/readyz")[0] == 200:
                return
        except OSError:
            pass
        time.sleep(0.1)
    raise SystemExit(f"the server did not start: {running.log.read_text(encoding='utf-8')}")


def get(connection: http.client.HTTPConnection, path: str) -> tuple[int, bytes]:
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read()


def post(connection: http.client.HTTPConnection, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
    """Status and body of the answer to JSON, or to bytes as they are."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    connection.request("POST", path, sent, {"content-type": "application/json", **headers})
    response = connection.getresponse()
    return response.status, response.read()
