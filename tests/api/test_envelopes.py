"""Every error in every dialect's words."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.exceptions import HTTPException

from hotprefix.api.envelopes import envelope_of
from hotprefix.api.errors import problem_of
from hotprefix.base.errors import (
    ContextLengthExceeded,
    Draining,
    Forbidden,
    InvalidRequest,
    LogicError,
    ModelNotFound,
    Overloaded,
    PayloadTooLarge,
    RateLimited,
    Unauthenticated,
)
from tests.api.support import HELLO, Server, read_events

NATIVE = "/api/v1/services/aigc/text-generation/generation"

ERRORS: list[tuple[Exception, int, str, int, str]] = [
    (InvalidRequest("x"), 400, "InvalidParameter", 400, "invalid_request_error"),
    (ContextLengthExceeded("x"), 400, "InvalidParameter", 400, "invalid_request_error"),
    (Unauthenticated("x"), 401, "InvalidApiKey", 401, "authentication_error"),
    (Forbidden("x"), 403, "AccessDenied", 403, "permission_error"),
    (ModelNotFound("x"), 404, "Model.NotExist", 404, "not_found_error"),
    (HTTPException(404), 404, "Not Found", 404, "not_found_error"),
    (HTTPException(405), 405, "Method Not Allowed", 405, "invalid_request_error"),
    (PayloadTooLarge("x"), 413, "InvalidParameter", 413, "request_too_large"),
    (RateLimited("x"), 429, "Throttling.RateQuota", 429, "rate_limit_error"),
    (Overloaded("x"), 429, "Throttling", 529, "overloaded_error"),
    (Draining("x"), 503, "ServiceUnavailable", 529, "overloaded_error"),
    (LogicError("secret"), 500, "InternalError", 500, "api_error"),
]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: repr(case[0]))
def test_every_error(case: tuple[Exception, int, str, int, str]) -> None:
    error, status, code, anthropic_status, kind = case
    problem = problem_of(error, "r")
    flat = envelope_of(NATIVE)
    assert flat.status(problem) == status
    assert flat.document(problem, "r") == {"code": code, "message": problem.message, "request_id": "r"}
    anthropic = envelope_of("/v1/messages")
    assert anthropic.status(problem) == anthropic_status
    assert anthropic.document(problem, "r") == {
        "type": "error",
        "error": {"type": kind, "message": problem.message},
        "request_id": "r",
    }
    assert "secret" not in problem.message


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/v1/chat/completions", {"error"}),
        ("/v1/responses", {"error"}),
        ("/nothing", {"error"}),
        ("/compatible-mode/v1/chat/completions", {"error", "request_id"}),
        ("/compatible-mode/v1/responses", {"code", "message", "request_id"}),
        (NATIVE, {"code", "message", "request_id"}),
        ("/v1/messages", {"type", "error", "request_id"}),
        ("/apps/anthropic/v1/messages/count_tokens", {"type", "error", "request_id"}),
    ],
)
@pytest.mark.anyio
async def test_the_path_chooses_the_form(server: Server, path: str, keys: set[str]) -> None:
    body: dict[str, Any] = {"messages": HELLO}
    response = await server.client.post(path, json=body)
    assert response.status_code in (400, 404)
    assert set(response.json()) == keys
    if "request_id" in keys:
        assert response.json()["request_id"] == response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("/v1/chat/completions", {"error"}),
        ("/v1/completions", {"error"}),
        ("/compatible-mode/v1/chat/completions", {"error", "request_id"}),
        ("/compatible-mode/v1/completions", {"error", "request_id"}),
    ],
)
@pytest.mark.anyio
async def test_an_error_within_a_stream_has_the_form_of_its_path(
    server: Server, path: str, keys: set[str]
) -> None:
    server.engine.fail_after = 3
    body = (
        {"prompt": "Hello"} if path.endswith("/completions") and "chat" not in path else {"messages": HELLO}
    )
    response = await server.client.post(
        path, json={"model": "scripted", "stream": True} | body, headers={"x-request-id": "mine"}
    )
    assert response.status_code == 200
    error = read_events(response.text)[-1]
    assert set(error) == keys
    assert error["error"]["code"] == "internal_error"
    assert error.get("request_id", "mine") == "mine"
