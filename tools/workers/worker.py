"""A worker process: reads calls from standard input, writes replies to standard output, a JSON line each.

``python -m tools.workers.worker`` is started by ``tools.workers.pool`` and ends when its input ends. A call that takes
too long is stopped by killing the process: nothing else stops Python code that computes.
"""

from __future__ import annotations

import json
import os
import select
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from advisor.errors import AdvisorError
from advisor.versions import versions
from tools import find_tool
from tools.log import log_json
from tools.request_id import begin_request
from tools.workers.kept import digest

if TYPE_CHECKING:
    from typing import TextIO

IDLE_S: Final = 1.0
SELDOM_ASKED: Final[tuple[tuple[str, dict[str, str]], ...]] = (
    ("list_catalog", {}),
    ("explain", {"question": "What is ZeRO?"}),
)


def main() -> None:
    """Answer until the input ends. What others print goes to standard error: standard output speaks JSON only."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    log_json()
    _warm()
    _say(replies, {"edition": digest(json.dumps(versions(), sort_keys=True))})
    _warm_while_idle()
    for line in sys.stdin:
        _say(replies, answer(json.loads(line)))


def answer(call: dict[str, Any]) -> dict[str, Any]:
    """The reply to one call: its text and body, or its error."""
    begin_request(call["request_id"])
    try:
        tool, allow_paths = find_tool(call["tool"]), call["allow_paths"]
        reply = tool.reply(call["arguments"], allow_paths=allow_paths, budget_s=call["budget_s"])
        return {"text": reply.text, "body": reply.as_json(), "whole": reply.whole}
    except AdvisorError as error:
        return {"error": error.as_dict()}


def _warm() -> None:
    """Load the catalog, the formulas and the search before the first caller waits for them."""
    for name in ("estimate_memory", "recommend_setup"):
        find_tool(name).reply(find_tool(name).examples[-1], allow_paths=False)


def _warm_while_idle() -> None:
    """Load what is large and seldom asked for, unless a call comes; its first caller would wait seconds for it."""
    with suppress(AdvisorError, OSError):  # nothing depends on it; and not every system can wait on its input
        for name, arguments in SELDOM_ASKED:
            if select.select([sys.stdin], [], [], IDLE_S)[0]:
                return
            find_tool(name).reply(arguments, allow_paths=False)


def _say(replies: TextIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


if __name__ == "__main__":
    main()
