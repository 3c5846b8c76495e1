"""Answers kept in memory: a call that was answered whole is not computed again while the server runs.

Answers follow from arguments and editions alone, so an answer is known by the hash of both; when a worker of another
edition starts, what older ones said is no longer found. Refusals, and answers that a budget cut short, are not kept.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from advisor import __version__
from advisor.units import MIB
from tools.workers.runner import RunnerInFront

if TYPE_CHECKING:
    from tools.tool import Tool
    from tools.web.metrics import Metrics
    from tools.workers.runner import Runner, Sent

MOST_BYTES: Final = 64 * MIB
MOST_ANSWERS: Final = 10_000
#: An answer larger than this share of the whole would push out too many others.
LARGEST_SHARE: Final = 0.1


class KeepingRunner(RunnerInFront):
    """A runner that keeps answers, the least recently asked for making room.

    Args:
        runner: computes what is not kept.
        metrics: where calls answered from memory are counted, as outcome ``kept``.
        most_bytes: of answers, texts included; none are kept when 0.
    """

    def __init__(self, runner: Runner, metrics: Metrics, most_bytes: int = MOST_BYTES) -> None:
        super().__init__(runner)
        self.metrics = metrics
        self.most_bytes = most_bytes
        self.bytes = 0
        self._answers: OrderedDict[str, Sent] = OrderedDict()

    @property
    def count(self) -> int:
        """How many answers are kept."""
        return len(self._answers)

    async def reply(self, tool: Tool, arguments: Any, *, allow_paths: bool) -> Sent:
        """See ``tools.workers.runner.Runner.reply``; what a path names may change, so with paths nothing is kept."""
        if allow_paths:
            return await self.runner.reply(tool, arguments, allow_paths=True)
        name = self._name(tool, arguments)
        sent = self._found(tool, name)
        if sent is None:
            sent = await self.runner.reply(tool, arguments, allow_paths=False)
            self._keep(name, sent)
        return sent

    def kept(self, tool: Tool, arguments: Any) -> Sent | None:
        """The answer, when it is kept."""
        return self._found(tool, self._name(tool, arguments))

    def _found(self, tool: Tool, name: str) -> Sent | None:
        if name not in self._answers:
            return None
        self._answers.move_to_end(name)
        self.metrics.calls[tool.name, "kept"] += 1
        return self._answers[name]

    def _name(self, tool: Tool, arguments: Any) -> str:
        return inputs_hash(tool, arguments) + self.edition

    def _keep(self, name: str, sent: Sent) -> None:
        if not sent.whole or name in self._answers or _size(sent) > self.most_bytes * LARGEST_SHARE:
            return
        self._answers[name] = sent
        self.bytes += _size(sent)
        while self.bytes > self.most_bytes or len(self._answers) > MOST_ANSWERS:
            self.bytes -= _size(self._answers.popitem(last=False)[1])


def inputs_hash(tool: Tool, arguments: Any) -> str:
    """A name for what was asked: equal for equal arguments of one release, whatever their order."""
    return digest(json.dumps([__version__, tool.name, arguments], sort_keys=True))


def digest(text: str) -> str:
    """A short hash of text."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def _size(sent: Sent) -> int:
    return sys.getsizeof(sent.text) + sys.getsizeof(sent.body)
