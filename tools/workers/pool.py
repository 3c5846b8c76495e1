"""Worker processes behind one door: a call out of time or given up is stopped, a worker that dies is replaced.

One process listens and keeps the counts; ``workers`` processes compute. Long calls (searches and sweeps) never hold the
last of several workers, so that a small call does not wait for a large one.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import anyio
from anyio.streams.buffered import BufferedByteReceiveStream

from advisor.errors import AdvisorError
from tools.request_id import current_request_id
from tools.workers.runner import TIME_LIMIT_S, Sent, out_of_time

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from anyio.abc import Process, TaskGroup

    from tools.tool import Tool

WORKERS: Final = 2
LONGEST_REPLY: Final = 256 * 1024 * 1024
START_LIMIT_S: Final = 120.0
PAUSE_S: Final = 1.0
#: Searches that may wait for a worker; one more would hardly get one in time.
MOST_WAITING: Final = 20
PACKAGES: Final = Path(__file__).parents[2]
COMMAND: Final = (sys.executable, "-m", "tools.workers.worker")

logger = logging.getLogger("trainfit")


class WorkerLostError(Exception):
    """A worker process ended while it was asked."""


@dataclass(frozen=True)
class Worker:
    """A process that computes one call at a time."""

    process: Process
    replies: BufferedByteReceiveStream

    @classmethod
    async def start(cls) -> Worker:
        """A worker process of its own session: a Ctrl-C in the terminal is for the server, which ends its workers."""
        paths = os.pathsep.join([str(PACKAGES), *filter(None, [os.environ.get("PYTHONPATH")])])
        process = await anyio.open_process(
            COMMAND, stderr=None, env={**os.environ, "PYTHONPATH": paths}, start_new_session=True
        )
        assert process.stdout is not None
        return cls(process, BufferedByteReceiveStream(process.stdout))

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self.process.returncode is None

    async def heard(self) -> Any:
        """The next line the worker says, as data."""
        try:
            return json.loads(await self.replies.receive_until(b"\n", LONGEST_REPLY))
        except (anyio.EndOfStream, anyio.IncompleteRead, anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise WorkerLostError from None

    async def asked(self, call: Mapping[str, Any]) -> Any:
        """The worker's reply to a call."""
        assert self.process.stdin is not None
        try:
            await self.process.stdin.send(json.dumps(call).encode() + b"\n")
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            raise WorkerLostError from None
        return await self.heard()

    def kill(self) -> None:
        """Stop the process now."""
        if self.alive:
            self.process.kill()


@dataclass
class Pool:
    """A runner whose calls are computed by worker processes; use it with ``async with``.

    Attributes:
        workers: how many processes compute.
        time_limit_s: seconds a call may take, its wait for a worker included.
        budget_s: seconds of processor time after which a search answers with what it has; no bound when None.
        replaced: how many workers have ended and been replaced.
        edition: the editions of the worker that started last, as one word.
    """

    workers: int = WORKERS
    time_limit_s: float = TIME_LIMIT_S
    budget_s: float | None = None
    replaced: int = 0
    edition: str = ""
    _seats: list[Worker] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Start the workers; calls wait until one is ready."""
        self._free_in, self._free = anyio.create_memory_object_stream[Worker](math.inf)
        self._long = anyio.Semaphore(max(1, self.workers - 1))
        self._tasks: TaskGroup = anyio.create_task_group()
        await self._tasks.__aenter__()
        for _ in range(self.workers):
            self._tasks.start_soon(self._keep_a_seat)
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the workers."""
        self._tasks.cancel_scope.cancel()
        await self._tasks.__aexit__(None, None, None)
        self._free_in.close()
        self._free.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """The worker processes that are ready or at work."""
        return tuple(worker.process.pid for worker in self._seats if worker.alive)

    async def reply(self, tool: Tool, arguments: Any, *, allow_paths: bool) -> Sent:
        """The tool's reply. The worker is killed when the call runs out of time or its caller gives up.

        Raises:
            AdvisorError: what the tool raises; ``busy`` when too many calls wait or no worker became free in time,
                ``time_limit`` when the call was too long, ``worker_lost`` when two workers ended under it.
        """
        tool.read(arguments, allow_paths=allow_paths)  # what is refused need not wait
        self._refuse_when_crowded(tool)
        call = {
            "request_id": current_request_id(),
            "tool": tool.name,
            "arguments": arguments,
            "allow_paths": allow_paths,
            "budget_s": self.budget_s,
        }
        started = False
        try:
            with anyio.fail_after(self.time_limit_s):
                async with self._turn(tool), self._lent() as first:
                    started = True
                    said = await self._asked(first, call)
        except TimeoutError:
            raise out_of_time(tool.name, self.time_limit_s) if started else _busy(self.time_limit_s) from None
        if "error" in said:
            raise AdvisorError(**said["error"])
        return Sent(**said)

    def _refuse_when_crowded(self, tool: Tool) -> None:
        if tool.long and self._long.statistics().tasks_waiting >= MOST_WAITING:
            detail = f"{MOST_WAITING} searches are waiting for a worker already; ask again later"
            raise AdvisorError("busy", detail)

    def _turn(self, tool: Tool) -> AbstractAsyncContextManager[Any]:
        return self._long if tool.long else nullcontext()

    async def _asked(self, first: Worker, call: Mapping[str, Any]) -> Any:
        """What a worker says; another is asked when the first one ends meanwhile, since a call changes nothing."""
        try:
            return await first.asked(call)
        except WorkerLostError:
            logger.warning("worker %s ended during a call; another one is asked", first.process.pid)
        async with self._lent() as second:
            try:
                return await second.asked(call)
            except WorkerLostError:
                detail = f"two worker processes ended while they computed {call['tool']}; ask for less, or report it"
                raise AdvisorError("worker_lost", detail) from None

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Worker]:
        """A free worker, given back after its reply; killed when there was none."""
        worker = await self._free.receive()
        while not worker.alive:
            worker = await self._free.receive()
        try:
            yield worker
        except BaseException:
            worker.kill()
            raise
        self._free_in.send_nowait(worker)

    async def _keep_a_seat(self) -> None:
        """One worker after the other, for as long as the pool is open."""
        while True:
            try:
                worker = await Worker.start()
                await self._serve_until_it_ends(worker)
            except (OSError, WorkerLostError, TimeoutError):
                logger.exception("a worker did not start")
                await anyio.sleep(PAUSE_S)
            else:
                self.replaced += 1

    async def _serve_until_it_ends(self, worker: Worker) -> None:
        try:
            with anyio.fail_after(START_LIMIT_S):
                self.edition = (await worker.heard())["edition"]
            self._seats.append(worker)
            self._free_in.send_nowait(worker)
            await worker.process.wait()
            self._seats.remove(worker)
        finally:
            worker.kill()
            with anyio.CancelScope(shield=True):
                await worker.process.aclose()


def _busy(time_limit_s: float) -> AdvisorError:
    detail = f"every worker was busy for {time_limit_s:g} s; ask again later, or start the server with more --workers"
    return AdvisorError("busy", detail)
