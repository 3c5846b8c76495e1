"""The gate before both surfaces: Host, Origin, key, rate and body are judged here, before anything is read or run.

It is plain ASGI, so that MCP and JSON requests pass the same checks and are refused in the same shape.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
from starlette.datastructures import Headers

from advisor.errors import AdvisorError
from tools.web.keys import Keys
from tools.web.problem import problem
from tools.web.rate import RateLimit

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tools.web.tokens import Tokens

BODY_LIMIT: Final = 1024 * 1024
BODY_TIME_S: Final = 10.0
LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
#: Asked by orchestrators, which hold no key; they say nothing of anybody.
OPEN: Final = frozenset({"/healthz", "/readyz"})


@dataclass(frozen=True)
class Policy:
    """Who may ask, and how much.

    Attributes:
        hosts: names that the Host header may carry, without port; any when empty.
        origins: web pages that may ask beside those of this server (``https://portal.example``).
        keys: bearer keys.
        tokens: access tokens; nobody is asked for either when there are neither keys nor tokens.
        rate: requests per minute and key, or per address when there are no keys.
        body_time_s: seconds a body may take to arrive.
    """

    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    keys: Keys = field(default_factory=Keys)
    tokens: Tokens | None = None
    rate: RateLimit = field(default_factory=RateLimit)
    body_time_s: float = BODY_TIME_S


class Gate:
    """ASGI middleware that lets through what a policy accepts, and hands the whole body on."""

    def __init__(self, app: ASGIApp, policy: Policy) -> None:
        self.app = app
        self.policy = policy

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Judge one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            scope["state"] = {**scope.get("state", {}), "caller": self._admitted(scope)}
            body = await self._body(receive)
        except AdvisorError as error:
            given = bool(Headers(scope=scope).get("authorization"))
            await problem(error, self._headers(error, given=given))(scope, receive, send)
            return
        await self.app(scope, _replayed(body, receive), send)

    def _admitted(self, scope: Scope) -> str:
        """The caller's name, after the checks that need no body."""
        headers = Headers(scope=scope)
        self._check_host(headers.get("host", ""))
        self._check_origin(headers.get("origin"), headers.get("host", ""))
        if scope["path"] in OPEN or (self.policy.tokens and scope["path"] == self.policy.tokens.metadata_path):
            return ""
        caller = self._caller(headers.get("authorization", ""), scope)
        self.policy.rate.take(caller)
        return caller

    def _check_host(self, given: str) -> None:
        name = given.rsplit(":", 1)[0] if not given.endswith("]") else given
        if self.policy.hosts and name.lower() not in self.policy.hosts:
            detail = f"the Host header says {given[:80]!r}; accepted: {', '.join(self.policy.hosts)}"
            raise AdvisorError("foreign_host", detail)

    def _check_origin(self, given: str | None, host: str) -> None:
        """A browser names the page that asks: it must be one of this server's own, or an accepted one."""
        if given is None or given in {f"http://{host}", f"https://{host}", *self.policy.origins}:
            return
        detail = f"the page {given[:80]!r} may not ask; accepted: pages of this server, and those named by --origin"
        raise AdvisorError("foreign_origin", detail)

    def _caller(self, authorization: str, scope: Scope) -> str:
        keys, tokens = self.policy.keys, self.policy.tokens
        if not (keys or tokens):
            return (scope.get("client") or ("local",))[0]
        holder = keys.holder(authorization) or (tokens and tokens.holder(authorization))
        if not holder:
            given = "the key is not known" if authorization else "no key was given"
            raise AdvisorError("unauthorized", f"{given}; send a header 'Authorization: Bearer KEY'")
        return holder

    async def _body(self, receive: Receive) -> bytes:
        body = bytearray()
        try:
            with anyio.fail_after(self.policy.body_time_s):
                while True:
                    message = await receive()
                    body.extend(message.get("body", b""))
                    if len(body) > BODY_LIMIT:
                        raise AdvisorError("body_too_large", f"the request body is larger than {BODY_LIMIT:,} bytes")
                    if not message.get("more_body", False):
                        return bytes(body)
        except TimeoutError:
            detail = f"the request body did not arrive within {self.policy.body_time_s:g} s"
            raise AdvisorError("request_timeout", detail) from None

    def _headers(self, error: AdvisorError, *, given: bool) -> dict[str, str]:
        if error.code in ("unauthorized", "insufficient_scope"):
            tokens = self.policy.tokens
            return {"WWW-Authenticate": tokens.challenge(error, given=given) if tokens else "Bearer"}
        if error.code == "rate_limited":
            return {"Retry-After": str(self.policy.rate.wait_s())}
        return {}


def _replayed(body: bytes, receive: Receive) -> Receive:
    """A ``receive`` that gives the body that was read, then what really follows (the caller leaves)."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return waiting.pop() if waiting else await receive()

    return replay
