"""While the model loads: health is told, and every dialect says in its own words to come again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from hotprefix.api.starting import StartingApp

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(anyio_backend: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(app=StartingApp())
    async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
        yield client


async def test_it_is_alive_and_not_ready(client: httpx.AsyncClient) -> None:
    health, ready = await client.get("/healthz"), await client.get("/readyz")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (503, {"status": "starting"})
    assert ready.headers["retry-after"] == "1"
    for response in (health, ready):
        assert response.headers["connection"] == "close"
        assert response.headers["x-request-id"]


@pytest.mark.parametrize(
    ("path", "status", "keys"),
    [
        ("/v1/chat/completions", 503, {"error"}),
        ("/v1/completions", 503, {"error"}),
        ("/v1/responses", 503, {"error"}),
        ("/v1/models", 503, {"error"}),
        ("/metrics", 503, {"error"}),
        ("/admin/keys", 503, {"error"}),
        ("/compatible-mode/v1/chat/completions", 503, {"error", "request_id"}),
        ("/compatible-mode/v1/responses", 503, {"code", "message", "request_id"}),
        (
            "/api/v1/services/aigc/text-generation/generation",
            503,
            {"code", "message", "request_id"},
        ),
        ("/v1/messages", 529, {"type", "error", "request_id"}),
        ("/apps/anthropic/v1/messages", 529, {"type", "error", "request_id"}),
    ],
)
async def test_every_route_says_to_come_again(
    client: httpx.AsyncClient, path: str, status: int, keys: set[str]
) -> None:
    response = await client.post(path, json={"model": "any"}, headers={"x-request-id": "mine"})
    body = response.json()
    assert (response.status_code, set(body)) == (status, keys)
    assert int(response.headers["retry-after"]) > 0
    assert response.headers["x-request-id"] == "mine"
    assert body.get("request_id", "mine") == "mine"
    error = body.get("error", body)
    assert "loading its model" in error["message"]
    if keys == {"error"}:
        assert (error["type"], error["code"]) == ("service_unavailable_error", "starting")
    if "code" in body:
        assert body["code"] == "ServiceUnavailable"
    if status == 529:
        assert error["type"] == "overloaded_error"
