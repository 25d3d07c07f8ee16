"""An error in the form of the dialect that was spoken: which form follows from the path."""

from __future__ import annotations

from typing import Any, Protocol

import orjson

from hotprefix.api.errors import Problem

_DASHSCOPE_CODES = {
    "model_not_found": "Model.NotExist",
    "unknown_url": "Not Found",
    "response_not_found": "Not Found",
    "response_expired": "Not Found",
    "method_not_allowed": "Method Not Allowed",
    "overloaded": "Throttling",
}
_DASHSCOPE_BY_STATUS = {
    401: "InvalidApiKey",
    403: "AccessDenied",
    429: "Throttling.RateQuota",
    503: "ServiceUnavailable",
    504: "GatewayTimeout",
}
_ANTHROPIC_BY_STATUS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_ANTHROPIC_OVERLOADED = 529


class Envelope(Protocol):
    """One dialect's way to tell a problem."""

    def status(self, problem: Problem) -> int: ...

    def document(self, problem: Problem, request_id: str) -> dict[str, Any]:
        """The body, whole or as the data of a stream's event."""
        ...

    def headers(self, request_id: str) -> tuple[tuple[bytes, bytes], ...]:
        """Beside `x-request-id` and the problem's own."""
        ...


class OpenAiEnvelope:
    """`{"error": {"message", "type", "param", "code"}}`."""

    def status(self, problem: Problem) -> int:
        return problem.status

    def document(self, problem: Problem, request_id: str) -> dict[str, Any]:
        return problem.envelope()

    def headers(self, request_id: str) -> tuple[tuple[bytes, bytes], ...]:
        return ()


class CompatibleEnvelope(OpenAiEnvelope):
    """DashScope's compatible mode: OpenAI's form with `request_id` beside `error`."""

    def document(self, problem: Problem, request_id: str) -> dict[str, Any]:
        return problem.envelope() | {"request_id": request_id}


class DashScopeEnvelope(OpenAiEnvelope):
    """DashScope's native routes and its Responses: flat, with DashScope's codes."""

    def document(self, problem: Problem, request_id: str) -> dict[str, Any]:
        return {"code": dashscope_code(problem), "message": problem.message, "request_id": request_id}


class AnthropicEnvelope:
    """`{"type": "error", "error": {"type", "message"}, "request_id"}`: Anthropic's types and statuses."""

    def status(self, problem: Problem) -> int:
        if problem.code == "overloaded" or problem.status == 503:
            return _ANTHROPIC_OVERLOADED
        return problem.status

    def document(self, problem: Problem, request_id: str) -> dict[str, Any]:
        status = self.status(problem)
        fallback = "api_error" if status >= 500 else "invalid_request_error"
        kind = _ANTHROPIC_BY_STATUS.get(status, fallback)
        error = {"type": kind, "message": problem.message}
        return {"type": "error", "error": error, "request_id": request_id}

    def headers(self, request_id: str) -> tuple[tuple[bytes, bytes], ...]:
        return request_id_header(request_id)


def dashscope_code(problem: Problem) -> str:
    """DashScope's word for it."""
    if problem.code in _DASHSCOPE_CODES:
        return _DASHSCOPE_CODES[problem.code]
    fallback = "InternalError" if problem.status >= 500 else "InvalidParameter"
    return _DASHSCOPE_BY_STATUS.get(problem.status, fallback)


def request_id_header(request_id: str) -> tuple[tuple[bytes, bytes], ...]:
    """Anthropic's libraries look for the id here."""
    return ((b"request-id", request_id.encode()),)


def envelope_of(path: str) -> Envelope:
    """How errors of this path are told."""
    if path.startswith("/apps/anthropic/") or path.startswith("/v1/messages"):
        return AnthropicEnvelope()
    if path.startswith("/api/v1/") or "/compatible-mode/v1/responses" in path:
        return DashScopeEnvelope()
    return CompatibleEnvelope() if path.startswith("/compatible-mode/") else OpenAiEnvelope()


def encoded(envelope: Envelope, problem: Problem, request_id: str) -> bytes:
    """The body's bytes."""
    return orjson.dumps(envelope.document(problem, request_id))
