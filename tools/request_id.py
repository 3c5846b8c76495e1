"""The id of the request that is being answered: one for the reply's header, the log and an error of ours."""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Final
from uuid import uuid4

HEADER: Final = "x-request-id"
_CURRENT: Final[ContextVar[str]] = ContextVar("request_id", default="")
_ACCEPTED: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def current_request_id() -> str:
    """The id of the request in hand; a new one outside of any request."""
    return _CURRENT.get() or uuid4().hex[:12]


def begin_request(given: str | None = None) -> str:
    """Name the request that begins here: by the id its caller gave, when that is short and plain, else by a new one."""
    request_id = given if given and _ACCEPTED.fullmatch(given) else uuid4().hex[:12]
    _CURRENT.set(request_id)
    return request_id
