"""Reads JSON text from a body, a file or an argument: every key once, and an error that names the line."""

from __future__ import annotations

import json
from typing import Any

from advisor.errors import AdvisorError


def parse_json(text: str | bytes, *, what: str) -> Any:
    """The data in JSON text; ``what`` names the text in errors ("the request body").

    Raises:
        AdvisorError: ``malformed_json`` with line and column, a repeated key, or absurd nesting.
    """
    try:
        return json.loads(text, object_pairs_hook=_each_key_once)
    except json.JSONDecodeError as error:
        detail = f"{what} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise AdvisorError("malformed_json", detail) from None
    except RecursionError:
        raise AdvisorError("malformed_json", f"{what} is nested too deeply to read") from None
    except ValueError as error:  # not UTF-8, or an integer of thousands of digits
        raise AdvisorError("malformed_json", f"{what} is not JSON: {str(error)[:120]}") from None


def _each_key_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise AdvisorError("malformed_json", f"{repeated[:80]!r} is given twice in one object")
    return data
