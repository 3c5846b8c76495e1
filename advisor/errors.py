"""One error shape for every door: what was given, what is accepted, where, and the nearest names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AdvisorError(Exception):
    """An answer to bad input.

    Attributes:
        code: a stable identifier (``unknown_argument``, ``unknown_model``, ``illegal_layout`` …).
        detail: one sentence: what was given, what is accepted, what to do next.
        pointer: JSON pointer of the field (``/tensor_parallel``); empty for the whole request.
        suggestions: accepted values close to what was given, best first.
    """

    def __init__(self, code: str, detail: str, *, pointer: str = "", suggestions: Iterable[str] = ()) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.pointer = pointer
        self.suggestions = tuple(suggestions)

    def as_dict(self) -> dict[str, object]:
        """The four fields, as every door sends them."""
        return {
            "code": self.code,
            "detail": self.detail,
            "pointer": self.pointer,
            "suggestions": list(self.suggestions),
        }


def nearest(given: str, accepted: Iterable[str], *, count: int = 3) -> tuple[str, ...]:
    """The accepted names closest to ``given``, best first; empty when none is close."""
    names = list(dict.fromkeys(accepted))
    lowered = {name.lower(): name for name in names}
    close = difflib.get_close_matches(given.lower(), lowered, n=count, cutoff=0.5)
    starts = [name for low, name in lowered.items() if given and low.startswith(given.lower()) and low not in close]
    return tuple([lowered[name] for name in close] + starts)[:count]


def unknown_name(kind: str, given: str, accepted: Iterable[str], *, pointer: str, code: str = "") -> AdvisorError:
    """The error for a name that is not in a list of accepted names."""
    names = list(dict.fromkeys(accepted))
    close = nearest(given, names)
    hint = f"did you mean {' or '.join(repr(name) for name in close)}?" if close else ""
    listed = ", ".join(names) if len(names) <= 16 else f"{len(names)} names; list_catalog shows them"  # noqa: PLR2004
    detail = f"{given!r} is not a known {kind}; {hint or 'accepted: ' + listed}"
    return AdvisorError(code or f"unknown_{kind.replace(' ', '_')}", detail, pointer=pointer, suggestions=close)
