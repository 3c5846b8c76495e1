"""Each HTTP request gets an id, one log line and one count; what it asked is in none of them."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import compile_path

from tools.request_id import HEADER, begin_request, current_request_id

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tools.web.metrics import Metrics

logger = logging.getLogger("trainfit.requests")
#: Methods that are counted by name; any other could be of a caller's making.
METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})


class Watch:
    """ASGI middleware around everything else.

    Args:
        app: what answers.
        metrics: where requests are counted.
        paths: the paths there are, ``{name}`` for a part that callers choose; all others are counted as one.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, paths: frozenset[str]) -> None:
        self.app = app
        self.metrics = metrics
        self.paths = paths
        self.forms = {path: compile_path(path)[0] for path in sorted(paths) if "{" in path}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, then count and log it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request_id = begin_request(Headers(scope=scope).get(HEADER))
        start, status = time.perf_counter(), 499

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message).update({HEADER: request_id, "x-content-type-options": "nosniff"})
            await send(message)

        try:
            await self.app(scope, receive, sent)
        finally:
            self._record(scope, status, time.perf_counter() - start)

    def _form(self, path: str) -> str:
        """The path as it is counted: what a caller put into it makes no count of its own."""
        if path in self.paths:
            return path
        return next((form for form, pattern in self.forms.items() if pattern.match(path)), "other")

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        path = self._form(scope["path"])
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.requests[method, path, status] += 1
        caller = scope.get("state", {}).get("caller", "")
        facts = {"method": method, "path": path, "status": status, "caller": caller, "seconds": round(seconds, 4)}
        logger.info("request", extra={"facts": {"request_id": current_request_id(), **facts}})
