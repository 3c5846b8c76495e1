"""Counts and durations in Prometheus' text format: requests by path and status, calls by tool and outcome."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from advisor.errors import AdvisorError
from tools.workers.runner import RunnerInFront

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.tool import Tool
    from tools.workers.runner import Runner, Sent

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS_S: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


@dataclass
class Metrics:
    """What has happened since the server started."""

    requests: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    durations: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0] * (len(BOUNDS_S) + 1)))
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    gauges: dict[str, int] = field(default_factory=dict)

    def count_call(self, tool: str, outcome: str, seconds: float) -> None:
        """One call of a tool; ``outcome`` is ``answer`` or the code of its error."""
        self.calls[tool, outcome] += 1
        self.seconds[tool] += seconds
        place = next((index for index, bound in enumerate(BOUNDS_S) if seconds <= bound), len(BOUNDS_S))
        self.durations[tool][place] += 1

    def exposition(self) -> str:
        """All of it as text."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from _heading("trainfit_requests_total", "counter", "HTTP requests by method, path and status")
        for (method, path, status), count in sorted(self.requests.items()):
            yield f'trainfit_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield from _heading("trainfit_calls_total", "counter", "Calls of tools by outcome")
        for (tool, outcome), count in sorted(self.calls.items()):
            yield f'trainfit_calls_total{{tool="{tool}",outcome="{outcome}"}} {count}'
        yield from _heading("trainfit_call_seconds", "histogram", "Seconds a call took, its wait included")
        for tool in sorted(self.durations):
            yield from self._histogram(tool)
        for name, value in sorted(self.gauges.items()):
            yield from _heading(name, "gauge", name.removeprefix("trainfit_").replace("_", " "))
            yield f"{name} {value}"

    def _histogram(self, tool: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*BOUNDS_S, "+Inf"), self.durations[tool], strict=True):
            total += count
            yield f'trainfit_call_seconds_bucket{{tool="{tool}",le="{bound}"}} {total}'
        yield f'trainfit_call_seconds_sum{{tool="{tool}"}} {self.seconds[tool]:.6f}'
        yield f'trainfit_call_seconds_count{{tool="{tool}"}} {total}'


class MeasuredRunner(RunnerInFront):
    """A runner whose calls are counted."""

    def __init__(self, runner: Runner, metrics: Metrics) -> None:
        super().__init__(runner)
        self.metrics = metrics

    async def reply(self, tool: Tool, arguments: Any, *, allow_paths: bool) -> Sent:
        """See ``tools.workers.runner.Runner.reply``."""
        start, outcome = time.perf_counter(), "given_up"
        try:
            reply = await self.runner.reply(tool, arguments, allow_paths=allow_paths)
            outcome = "answer"
        except AdvisorError as error:
            outcome = error.code
            raise
        finally:
            self.metrics.count_call(tool.name, outcome, time.perf_counter() - start)
        return reply


def _heading(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"
