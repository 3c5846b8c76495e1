"""``/v1/batch``: many calls in one request, JSON Lines in and JSON Lines out, an error for the line it belongs to."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio

from advisor.errors import AdvisorError
from advisor.request import unknown_argument
from tools import find_tool
from tools.json_text import parse_json
from tools.web.problem import details

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from tools.tool import Tool
    from tools.workers.runner import Runner

MOST_LINES: Final = 1000
MEDIA_TYPE: Final = "application/jsonl"
ACCEPTED_TYPES: Final = (MEDIA_TYPE, "application/x-ndjson", "application/json-lines")
AT_ONCE: Final = 8
MEMBERS: Final = ("tool", "arguments", "id")
#: A batch may take as long as this many calls.
TIMES_THE_LIMIT: Final = 10
EXAMPLE: Final = (
    '{"id": "a", "tool": "estimate_memory", "arguments": {"model": "llama-3-8b", "hardware": "1x8 H100-80GB"}}\n'
    '{"id": "b", "tool": "describe_model", "arguments": {"model": "70B"}}\n'
)


@dataclass(frozen=True)
class Batch:
    """The calls of one request.

    Attributes:
        lines: what was sent, blank lines left out.
        tools: what may be called.
        runner: computes the calls.
        take: counts a call against its caller's rate, and raises when there is none left.
    """

    lines: Sequence[str]
    tools: Sequence[Tool]
    runner: Runner
    take: Callable[[], None]

    async def replies(self) -> AsyncIterator[str]:
        """One line a call, in the order of the calls; a few are computed at once."""
        ends = time.monotonic() + TIMES_THE_LIMIT * self.runner.time_limit_s
        for first in range(0, len(self.lines), AT_ONCE):
            for reply in await self._together(self.lines[first : first + AT_ONCE], ends):
                yield reply + "\n"

    async def _together(self, lines: Sequence[str], ends: float) -> list[str]:
        replies = [""] * len(lines)

        async def answer(place: int) -> None:
            replies[place] = await self._reply(lines[place], ends)

        async with anyio.create_task_group() as tasks:
            for place in range(len(lines)):
                tasks.start_soon(answer, place)
        return replies

    async def _reply(self, line: str, ends: float) -> str:
        """The reply to one line: its id, a status as HTTP knows it, and the answer or the problem."""
        name = "null"
        try:
            call = parse_json(line, what="the line")
            name = _id(call)
            tool, arguments = self._read(call)
            _refuse_after(ends)
            self.take()
            sent = await self.runner.reply(tool, arguments, allow_paths=False)
        except AdvisorError as error:
            problem = details(error)
            return f'{{"id": {name}, "status": {problem["status"]}, "error": {json.dumps(problem)}}}'
        return f'{{"id": {name}, "status": {int(HTTPStatus.OK)}, "answer": {sent.body}}}'

    def _read(self, call: Any) -> tuple[Tool, Any]:
        if not isinstance(call, dict) or not isinstance(call.get("tool"), str):
            raise AdvisorError("invalid_value", 'a line is an object {"tool": NAME, "arguments": {…}}', pointer="/tool")
        for member in call:
            if member not in MEMBERS:
                raise unknown_argument(member, MEMBERS)
        return find_tool(call["tool"], self.tools), call.get("arguments") or {}


def _refuse_after(ends: float) -> None:
    if time.monotonic() > ends:
        raise AdvisorError("time_limit", "the batch took too long before this line; send the rest again")


def read_lines(body: bytes) -> list[str]:
    """The lines of a batch.

    Raises:
        AdvisorError: ``malformed_json`` when it is not UTF-8, ``batch_too_long`` beyond 1,000 lines.
    """
    try:
        lines = [line for line in body.decode("utf-8").split("\n") if line.strip()]
    except UnicodeDecodeError:
        raise AdvisorError("malformed_json", "the batch is not UTF-8 text") from None
    if len(lines) > MOST_LINES:
        detail = f"the batch holds {len(lines):,} lines; accepted: at most {MOST_LINES:,}"
        raise AdvisorError("batch_too_long", detail)
    return lines


def _id(call: Any) -> str:
    """The id of a call, as JSON: short text or a number, given back as it came.

    Raises:
        AdvisorError: any other id.
    """
    given = call.get("id") if isinstance(call, dict) else None
    if given is None or (isinstance(given, (str, int)) and len(str(given)) <= 100):  # noqa: PLR2004 - said below
        return json.dumps(given)
    raise AdvisorError("invalid_value", "id: expected a number or text of at most 100 characters", pointer="/id")
