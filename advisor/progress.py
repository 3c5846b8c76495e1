"""What a long call is at, told to whoever asked to hear it.

The rooms that work piece by piece say what comes next; where nobody listens, nothing happens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

#: Takes a few words on what comes next; it should return at once.
Listener = Callable[[str], None]

_CURRENT: Final[ContextVar[Listener | None]] = ContextVar("progress", default=None)


@contextmanager
def told_to(listener: Listener | None) -> Iterator[None]:
    """Let the work inside tell ``listener`` what it is at; nobody when None."""
    token = _CURRENT.set(listener)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def tell(what: str) -> None:
    """Say what comes next."""
    listener = _CURRENT.get()
    if listener is not None:
        listener(what)
