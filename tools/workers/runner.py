"""What the doors ask of whoever computes a call, and the plainest one: a thread of this process."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

import anyio
import anyio.to_thread

from advisor.errors import AdvisorError

if TYPE_CHECKING:
    from tools.tool import Tool

TIME_LIMIT_S: Final = 30.0
#: What a search may cost a caller on another machine, who shares the workers with others.
BUDGET_S: Final = 1.0


@dataclass(frozen=True)
class Sent:
    """A reply as it leaves for a host.

    Attributes:
        text: what a person or a model reads.
        body: the answer as JSON text.
        whole: False when the work was stopped by a budget, so that more work might say more.
    """

    text: str
    body: str
    whole: bool = True

    def as_data(self) -> dict[str, Any]:
        """The answer as plain JSON data."""
        data: dict[str, Any] = json.loads(self.body)
        return data


class Runner(Protocol):
    """Computes calls: in this process (:class:`ThreadRunner`) or in processes of their own (``tools.workers.pool``)."""

    @property
    def time_limit_s(self) -> float:
        """Seconds a call may take."""

    @property
    def edition(self) -> str:
        """The editions of code, catalog and rules that compute, as one word; empty where they cannot change."""

    async def reply(self, tool: Tool, arguments: Any, *, allow_paths: bool) -> Sent:
        """The reply of a tool.

        Raises:
            AdvisorError: what the tool raises; ``time_limit`` when the call takes longer than ``time_limit_s``.
        """


class RunnerInFront:
    """What stands in front of a runner and passes calls on: its limit and its editions are that one's."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner

    @property
    def time_limit_s(self) -> float:
        """The time limit of the runner behind."""
        return self.runner.time_limit_s

    @property
    def edition(self) -> str:
        """The editions of the runner behind."""
        return self.runner.edition


class ThreadRunner:
    """Computes in a thread of this process: for tests and for embedding. A call out of time is left to its end.

    Args:
        time_limit_s: seconds a call may take.
        budget_s: seconds of processor time after which a search answers with what it has; no bound when None.
    """

    def __init__(self, time_limit_s: float = TIME_LIMIT_S, budget_s: float | None = None) -> None:
        self.time_limit_s = time_limit_s
        self.budget_s = budget_s
        self.edition = ""

    async def reply(self, tool: Tool, arguments: Any, *, allow_paths: bool) -> Sent:
        """See :meth:`Runner.reply`."""
        work = partial(_computed, tool, arguments, allow_paths=allow_paths, budget_s=self.budget_s)
        try:
            with anyio.fail_after(self.time_limit_s):
                return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
        except TimeoutError:
            raise out_of_time(tool.name, self.time_limit_s) from None


def out_of_time(name: str, time_limit_s: float) -> AdvisorError:
    """The error for a call that was stopped."""
    detail = (
        f"{name} took longer than the time limit of {time_limit_s:g} s; "
        "fix more arguments (fewer free layout arguments, fewer GPUs), or start the server with --time-limit"
    )
    return AdvisorError("time_limit", detail)


def _computed(tool: Tool, arguments: Any, *, allow_paths: bool, budget_s: float | None) -> Sent:
    reply = tool.reply(arguments, allow_paths=allow_paths, budget_s=budget_s)
    return Sent(reply.text, reply.as_json(), reply.whole)
