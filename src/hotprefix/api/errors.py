"""Any error → status, headers and OpenAI's error envelope."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from starlette.exceptions import HTTPException

from hotprefix.base.errors import (
    InvalidRequest,
    Overloaded,
    RateLimited,
    RequestError,
    Unauthenticated,
    Unavailable,
)

_SHOWN_VALUE = 60
_INVALID = "invalid_request_error"


@dataclass(frozen=True, slots=True)
class Problem:
    """An error as the client sees it."""

    status: int
    kind: str
    code: str | None
    message: str
    param: str | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()

    def envelope(self) -> dict[str, Any]:
        """OpenAI's shape."""
        return {"error": {"message": self.message, "type": self.kind, "param": self.param, "code": self.code}}


def problem_of(error: BaseException, request_id: str) -> Problem:
    """What to tell the client. Anything unexpected is told without its details."""
    if isinstance(error, Unauthenticated):
        return Problem(
            error.status, _INVALID, error.code, str(error), headers=((b"www-authenticate", b"Bearer"),)
        )
    if isinstance(error, RequestError):
        return Problem(error.status, _INVALID, error.code, str(error), error.param)
    if isinstance(error, Overloaded | RateLimited):
        return _later(429, "rate_limit_error", error)
    if isinstance(error, Unavailable):
        return _later(503, "service_unavailable_error", error)
    if isinstance(error, HTTPException):
        return _of_http(error)
    return Problem(
        500,
        "server_error",
        "internal_error",
        f"The server failed to answer this request. Its log has the reason under request id {request_id}.",
    )


def _later(status: int, kind: str, error: Unavailable) -> Problem:
    headers = ((b"retry-after", str(error.retry_after).encode()),)
    return Problem(status, kind, error.code, str(error), headers=headers)


def _of_http(error: HTTPException) -> Problem:
    headers = tuple((k.lower().encode(), v.encode()) for k, v in (error.headers or {}).items())
    if error.status_code == 404:
        return Problem(404, _INVALID, "unknown_url", "There is nothing at this path.", headers=headers)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        message = f"This path does not take that method; it takes {allowed}."
        return Problem(405, _INVALID, "method_not_allowed", message, headers=headers)
    return Problem(error.status_code, _INVALID, None, error.detail, headers=headers)


def invalid_request(error: ValidationError) -> InvalidRequest:
    """The first fault that pydantic found, with its JSON path."""
    fault = error.errors(include_url=False)[0]
    param = _path(fault)
    if fault["type"] == "missing":
        return InvalidRequest(
            f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter"
        )
    text = _plain_words(fault["msg"])
    got = "" if _finer(fault) else _shown(fault.get("input"))
    code = "invalid_type" if fault["type"].endswith("_type") else "invalid_value"
    return InvalidRequest(f"Invalid value for '{param}': {text}{got}.", param=param, code=code)


def _plain_words(message: str) -> str:
    """JSON's words instead of Python's."""
    message = message.replace(" after validation", "").replace("valid dictionary", "object")
    message = message.replace("valid list", "array").replace("List should", "array should")
    return message[:1].lower() + message[1:]


def _path(fault: ErrorDetails) -> str:
    """`messages[2].content`; parts that start with `~` are tags of unions, not of the document."""
    path = ""
    for step in (*fault["loc"], *_finer(fault)):
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith("~"):
            # A name may be the client's own, and as long as a body may be.
            name = step if len(step) <= _SHOWN_VALUE else step[:_SHOWN_VALUE] + "…"
            path += f".{name}" if path else name
    return path or "body"


def _finer(fault: ErrorDetails) -> tuple[str, ...]:
    """A check over a whole object names the field at fault in its context."""
    field = fault.get("ctx", {}).get("field")
    return (field,) if isinstance(field, str) else ()


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return f" (got {str(value).lower()})"
    if value is None:
        return " (got null)"
    if isinstance(value, int | float):
        return f" (got {value})"
    if isinstance(value, str):
        short = value if len(value) <= _SHOWN_VALUE else value[:_SHOWN_VALUE] + "…"
        return f" (got {orjson.dumps(short).decode()})"
    return f" (got {'an array' if isinstance(value, list) else 'an object'})"
