"""Request ids, probes, log lines, metrics' endpoint."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.support import HELLO, Server

pytestmark = pytest.mark.anyio

BODY = {"model": "scripted", "messages": HELLO}


async def test_every_response_has_a_request_id(server: Server) -> None:
    for method, path in [("GET", "/healthz"), ("GET", "/nothing"), ("POST", "/v1/models")]:
        first, second = [
            (await server.client.request(method, path)).headers["x-request-id"] for _ in range(2)
        ]
        assert first != second


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [("abc-1:2.3_4", True), ("", False), ("a b", False), ("x" * 101, False), ("a\tb", False), ("-a", False)],
)
async def test_a_sane_request_id_is_kept(server: Server, wanted: str, kept: bool) -> None:
    response = await server.client.post("/v1/chat/completions", json=BODY, headers={"x-request-id": wanted})
    assert (response.headers["x-request-id"] == wanted) is kept
    assert server.engine.seen[0].request_id == response.headers["x-request-id"]


async def test_equal_request_ids_in_flight_are_told_apart_in_the_engine(server: Server) -> None:
    server.engine.hold_after = 1

    async def ask() -> str:
        response = await server.client.post(
            "/v1/chat/completions", json=BODY, headers={"x-request-id": "same"}
        )
        return response.headers["x-request-id"]

    asked = [asyncio.create_task(ask()) for _ in range(3)]
    async with asyncio.timeout(10):
        while server.engine.in_flight < 3:
            await asyncio.sleep(0.005)
    server.engine.release()
    assert await asyncio.gather(*asked) == ["same"] * 3
    ids = [request.request_id for request in server.engine.seen]
    assert len(set(ids)) == 3
    assert all(name.startswith("same") for name in ids)


async def test_readiness(server: Server) -> None:
    assert (await server.client.get("/readyz")).status_code == 200
    server.engine.ready = False
    response = await server.client.get("/readyz")
    assert (response.status_code, response.json()) == (503, {"status": "starting"})
    server.engine.ready = True
    server.inflight.drain()
    assert (await server.client.get("/readyz")).json() == {"status": "draining"}
    assert (await server.client.get("/healthz")).json() == {"status": "ok"}


async def test_models(server: Server) -> None:
    listed = (await server.client.get("/v1/models")).json()
    assert [model["id"] for model in listed["data"]] == ["scripted", "also-scripted"]
    one = (await server.client.get("/compatible-mode/v1/models/scripted")).json()
    assert one == listed["data"][0]
    assert one["max_model_len"] == 4096
    missing = await server.client.get("/v1/models/some/other")
    assert missing.json()["error"]["code"] == "model_not_found"


async def test_tokenize(server: Server) -> None:
    raw = (await server.client.post("/tokenize", json={"prompt": "hé", "foo": 1})).json()
    assert raw == {"count": 3, "max_model_len": 4096, "tokens": list("hé".encode())}
    chat = (await server.client.post("/tokenize", json={"messages": HELLO})).json()
    await server.chat()
    assert chat["tokens"] == list(server.engine.seen[0].prompt_ids)
    both = await server.client.post("/tokenize", json={"messages": HELLO, "prompt": "x"})
    assert both.status_code == 400


async def test_one_line_per_request(server: Server) -> None:
    await server.client.post("/v1/chat/completions", json=BODY, headers={"x-request-id": "r1"})
    (line,) = server.lines()
    prompt = len(server.engine.seen[0].prompt_ids)
    assert line["ttft_ms"] <= line["total_ms"]
    expected = {
        "request_id": "r1",
        "level": "info",
        "path": "/v1/chat/completions",
        "status": 200,
        "model": "scripted",
        "prompt_tokens": prompt,
        "cached_tokens": prompt // 2,
        "completion_tokens": len(HELLO[0]["content"].encode()) + 1,
        "finish_reason": "stop",
    }
    assert {key: line[key] for key in expected} == expected
    await server.client.post("/v1/chat/completions", json={})
    assert (server.lines()[1]["status"], server.lines()[1]["error"]) == (400, "missing_required_parameter")
    await server.client.get("/healthz")
    assert server.lines()[2]["level"] == "debug"


async def test_metrics_are_served(server: Server) -> None:
    response = await server.client.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
