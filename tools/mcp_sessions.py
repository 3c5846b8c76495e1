"""Cancelling over HTTP in the older era, where a cancellation arrives as a request of its own.

The server keeps no session. It gives each client a name with its first answer, which clients send back as their session
id; with the request's id, that finds the call. A client without a name cancels by closing the connection.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import anyio
from starlette.datastructures import Headers, MutableHeaders

if TYPE_CHECKING:
    from collections.abc import Iterator

    import mcp_types as types
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION_HEADER: Final = "mcp-session-id"
METHOD_HEADER: Final = "mcp-method"  # only the newer era sends it, and has no sessions
PATH: Final = "/mcp"


class NamedClients:
    """Middleware that gives a name to a client of the older era that has none."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; to one without a name, with a name."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        known = SESSION_HEADER in headers or METHOD_HEADER in headers

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start" and not known:
                MutableHeaders(scope=message)[SESSION_HEADER] = uuid4().hex
            await send(message)

        await self._app(scope, receive, named)


class Calls:
    """The calls in hand of clients that have a name."""

    def __init__(self) -> None:
        self._scopes: dict[tuple[str, Any], anyio.CancelScope] = {}

    @contextmanager
    def in_hand(self, context: Any) -> Iterator[anyio.CancelScope]:
        """For as long as a call is computed: what a cancellation of it stops."""
        name = _name(context)
        with anyio.CancelScope() as scope:
            if not name:
                yield scope
                return
            self._scopes[name, context.request_id] = scope
            try:
                yield scope
            finally:
                self._scopes.pop((name, context.request_id), None)

    async def cancel(self, context: Any, params: types.CancelledNotificationParams) -> None:
        """Stop the call that the same client names; one that is over, or not its own, is no fault."""
        scope = self._scopes.get((_name(context), params.request_id))
        if scope is not None:
            scope.cancel()


def _name(context: Any) -> str:
    request = getattr(context, "request", None)
    return request.headers.get(SESSION_HEADER, "") if request is not None else ""
