"""Runs a tool beside the event loop, and no longer than its time limit."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from advisor.errors import AdvisorError

if TYPE_CHECKING:
    from tools.tool import Reply, Tool

TIME_LIMIT_S: Final = 30.0


async def reply_within(tool: Tool, arguments: Any, *, allow_paths: bool, time_limit_s: float = TIME_LIMIT_S) -> Reply:
    """The tool's reply, computed in a worker thread.

    Raises:
        AdvisorError: what the tool raises; ``time_limit`` when it takes longer than ``time_limit_s`` seconds.
    """
    work = partial(tool.reply, arguments, allow_paths=allow_paths)
    try:
        with anyio.fail_after(time_limit_s):
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)
    except TimeoutError:
        detail = (
            f"{tool.name} took longer than the time limit of {time_limit_s:g} s; "
            "fix more arguments (fewer free layout arguments, fewer GPUs), or start the server with --time-limit"
        )
        raise AdvisorError("time_limit", detail) from None
