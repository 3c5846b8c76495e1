"""Errors over HTTP: RFC 9457 problem details with the four fields of every door."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from fastapi.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from advisor.errors import AdvisorError

PROBLEM: Final = "application/problem+json"
STATUS: Final = {
    "malformed_json": HTTPStatus.BAD_REQUEST,
    "unauthorized": HTTPStatus.UNAUTHORIZED,
    "foreign_origin": HTTPStatus.FORBIDDEN,
    "insufficient_scope": HTTPStatus.FORBIDDEN,
    "not_found": HTTPStatus.NOT_FOUND,
    "method_not_allowed": HTTPStatus.METHOD_NOT_ALLOWED,
    "request_timeout": HTTPStatus.REQUEST_TIMEOUT,
    "body_too_large": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    "unsupported_media_type": HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    "foreign_host": HTTPStatus.MISDIRECTED_REQUEST,
    "rate_limited": HTTPStatus.TOO_MANY_REQUESTS,
    "internal_error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "worker_lost": HTTPStatus.SERVICE_UNAVAILABLE,
    "busy": HTTPStatus.SERVICE_UNAVAILABLE,
    "not_ready": HTTPStatus.SERVICE_UNAVAILABLE,
    "time_limit": HTTPStatus.SERVICE_UNAVAILABLE,
}
#: What another try may well get past.
AGAIN_SOON: Final = ("busy", "not_ready")
PROBLEM_SCHEMA: Final = {
    "type": "object",
    "description": "RFC 9457 problem details",
    "required": ["type", "title", "status", "detail", "code", "pointer", "suggestions"],
    "properties": {
        "type": {"type": "string", "description": "a URN that ends in the code"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what was given, what is accepted"},
        "code": {"type": "string"},
        "pointer": {"type": "string", "description": "JSON pointer of the argument"},
        "suggestions": {"type": "array", "items": {"type": "string"}},
    },
}
_MEANINGS: Final = {
    400: "The body is not JSON",
    401: "A key or an access token is needed, or the one given is not accepted",
    403: "A page of another origin asks, or the access token grants too little",
    404: "There is no such name in the path; the nearest ones are suggested",
    408: "The body did not arrive in time",
    413: "The body is larger than 1 MiB",
    415: "The body is not of the type that is read here",
    421: "The Host header names another server",
    422: "What is wrong with the arguments",
    429: "More requests than one key may send",
    500: "A fault of the server",
    503: "The time limit was reached, or every worker was busy",
}


def details(error: AdvisorError, status: int | None = None) -> dict[str, Any]:
    """An error as the object that RFC 9457 describes; its status is that of its code where none is given."""
    status = status or STATUS.get(error.code, HTTPStatus.UNPROCESSABLE_ENTITY)
    title = error.code.replace("_", " ").capitalize()
    return {"type": f"urn:trainfit:error:{error.code}", "title": title, "status": int(status), **error.as_dict()}


def problem(error: AdvisorError, headers: Mapping[str, str] | None = None, status: int | None = None) -> JSONResponse:
    """An error as a response."""
    body = details(error, status)
    again = {"Retry-After": "1"} if error.code in AGAIN_SOON else None
    return JSONResponse(body, status_code=body["status"], headers=headers or again, media_type=PROBLEM)


def responses(*codes: int) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of the refusals of an operation: those every operation can give, and ``codes``."""
    shown = {"description": "", "content": {PROBLEM: {"schema": PROBLEM_SCHEMA}}}
    return {code: {**shown, "description": _MEANINGS[code]} for code in sorted({401, 403, 421, 429, 500, *codes})}
