"""What only a real connection shows: clients that go away, bodies in chunks, many connections, draining."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import pytest

from hotprefix.api.settings import ApiSettings
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, Server, in_process, on_socket, read_events

pytestmark = pytest.mark.anyio

BODY = {"model": "scripted", "messages": HELLO}


async def until(condition: Any) -> None:
    """Lets the loop run until the condition holds."""
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


@pytest.mark.parametrize("stream", [True, False])
async def test_a_client_that_goes_away_frees_the_engine(server: Server, stream: bool) -> None:
    server.engine.hold_after = 2
    async with on_socket(server) as sock:
        _, writer = await sock.post(stream=stream)
        await server.engine.held.wait()
        assert server.engine.in_flight == 1
        writer.close()
        await until(lambda: server.engine.in_flight == 0)
        assert list(server.engine.ended.values()) == ["closed by the reader"]
        await until(server.lines)
    (line,) = server.lines()
    assert line["client_gone"] is True
    assert line["completion_tokens"] == 2
    assert line["status"] == (200 if stream else 499)


async def test_a_client_that_goes_away_with_another_request_in_line(server: Server) -> None:
    server.engine.hold_after = 2
    async with on_socket(server) as sock:
        body = json.dumps(BODY).encode()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)
        _, writer = await asyncio.open_connection(sock.host, sock.port)
        writer.write((head + body) * 2)
        await server.engine.held.wait()
        writer.close()
        await until(lambda: server.engine.in_flight == 0)
        assert list(server.engine.ended.values()) == ["closed by the reader"]


async def test_a_client_that_goes_away_while_sending(server: Server) -> None:
    async with on_socket(server) as sock:
        _, writer = await sock.send(
            "POST /v1/chat/completions HTTP/1.1\nhost: x\ncontent-length: 100", b'{"model":'
        )
        await until(lambda: server.inflight.count == 1)
        writer.close()
        await until(server.lines)
    assert server.lines()[0]["client_gone"] is True


async def test_a_stream_arrives_token_by_token(server: Server) -> None:
    server.engine.hold_after = 3
    async with on_socket(server) as sock:
        reader, writer = await sock.post(stream=True, stream_options={"include_usage": True})
        seen = await reader.readuntil(b'"content":"l"')
        assert b"HTTP/1.1 200" in seen
        assert b"[DONE]" not in seen
        server.engine.release()
        assert b"[DONE]" in await reader.readuntil(b"0\r\n\r\n")
        writer.close()


async def test_headers_and_role_come_with_the_first_token() -> None:
    """So that the headers can say what the cache gave, and an early failure has its own status."""
    async with in_process(ScriptedEngine()) as server, on_socket(server) as sock:
        server.engine.hold_after = 0
        reader, writer = await sock.post(stream=True)
        await server.engine.held.wait()
        server.engine.release()
        head = await reader.readuntil(b"\r\n\r\n")
        assert b"text/event-stream" in head
        first = await reader.readuntil(b"\n\n")
        assert b'"role":"assistant"' in first
        await reader.readuntil(b"0\r\n\r\n")
        writer.close()


@pytest.mark.parametrize("declared", [True, False])
async def test_a_body_over_the_limit_on_a_socket(declared: bool) -> None:
    async with (
        in_process(ScriptedEngine(), ApiSettings(body_limit=50_000)) as server,
        on_socket(server) as sock,
    ):

        async def parts() -> Any:
            for _ in range(30):
                yield b"x" * 5000

        async with httpx.AsyncClient(base_url=sock.url) as client:
            content = b"x" * 150_000 if declared else parts()
            response = await client.post("/v1/chat/completions", content=content)
            assert response.status_code == 413
            assert response.json()["error"]["code"] == "payload_too_large"
            again = await client.post("/v1/chat/completions", json=BODY)
            assert again.status_code == 200


async def test_ten_megabytes_are_read_and_refused_for_their_tokens(server: Server) -> None:
    async with on_socket(server) as sock, httpx.AsyncClient(base_url=sock.url) as client:
        body = {"model": "scripted", "messages": [{"role": "user", "content": "x" * 10_000_000}]}
        response = await client.post("/v1/chat/completions", json=body)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"
    assert "10000" in response.json()["error"]["message"]


async def test_a_body_that_never_ends_times_out() -> None:
    async with (
        in_process(ScriptedEngine(), ApiSettings(body_timeout=0.05)) as server,
        on_socket(server) as sock,
    ):
        reader, writer = await sock.send(
            "POST /v1/chat/completions HTTP/1.1\nhost: x\ncontent-length: 100", b'{"model":'
        )
        answer = await reader.read()
        assert b"HTTP/1.1 408" in answer
        assert b"request_timeout" in answer
        writer.close()


async def test_a_thousand_connections() -> None:
    async with in_process(ScriptedEngine(lambda prompt: "ok")) as server, on_socket(server) as sock:
        server.engine.hold_after = 1
        connections = [await sock.post(stream=True) for _ in range(1000)]
        await until(lambda: server.engine.in_flight == 1000)
        server.engine.release()
        for reader, writer in connections:
            answer = await reader.readuntil(b"0\r\n\r\n")
            assert answer.count(b"[DONE]") == 1
            assert answer.count(b'"finish_reason":"stop"') == 1
            writer.close()
        assert server.engine.in_flight == 0
    ids = [request.request_id for request in server.engine.seen]
    assert len(set(ids)) == 1000


async def test_draining_finishes_what_runs_and_refuses_what_comes(server: Server) -> None:
    server.engine.hold_after = 2
    async with on_socket(server) as sock, httpx.AsyncClient(base_url=sock.url) as client:
        running = asyncio.create_task(client.post("/v1/chat/completions", json=BODY | {"stream": True}))
        await server.engine.held.wait()
        sock.serving.stop()
        await until(lambda: server.inflight.draining)
        late = await client.post("/v1/chat/completions", json=BODY)
        assert late.status_code == 503
        assert late.json()["error"]["code"] == "shutting_down"
        assert late.headers["connection"] == "close"
        assert int(late.headers["retry-after"]) > 0
        assert (await client.get("/readyz")).status_code == 503
        assert (await client.get("/healthz")).status_code == 200
        server.engine.release()
        chunks = read_events((await running).text)
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
        await sock.running


@pytest.mark.parametrize("stream", [True, False])
async def test_what_does_not_finish_in_time_is_ended(server: Server, stream: bool) -> None:
    server.engine.hold_after = 2
    async with on_socket(server, drain_timeout=0.05) as sock, httpx.AsyncClient(base_url=sock.url) as client:
        running = asyncio.create_task(client.post("/v1/chat/completions", json=BODY | {"stream": stream}))
        await server.engine.held.wait()
        sock.serving.stop()
        response = await running
        await sock.running
    assert list(server.engine.ended.values()) == ["aborted"]
    if stream:
        assert read_events(response.text)[-1]["error"]["code"] == "shutting_down"
    else:
        assert response.status_code == 503
        assert response.json()["error"]["code"] == "shutting_down"


async def test_a_second_signal_ends_it_at_once(server: Server) -> None:
    server.engine.hold_after = 2
    async with on_socket(server, drain_timeout=1000) as sock, httpx.AsyncClient(base_url=sock.url) as client:
        running = asyncio.create_task(client.post("/v1/chat/completions", json=BODY | {"stream": True}))
        await server.engine.held.wait()
        sock.serving.stop()
        await until(lambda: server.inflight.draining)
        sock.serving.stop()
        assert read_events((await running).text)[-1]["error"]["code"] == "shutting_down"
        await sock.running


async def test_a_body_that_never_ends_does_not_hold_up_the_end(server: Server) -> None:
    async with on_socket(server, drain_timeout=0.01, last_words=0.01) as sock:
        reader, writer = await sock.send(
            "POST /v1/chat/completions HTTP/1.1\nhost: x\ncontent-length: 100", b'{"model":'
        )
        await until(lambda: server.inflight.count == 1)
        sock.serving.stop()
        await sock.running
        answer = await reader.read()
        assert b"HTTP/1.1 503" in answer
        assert b"shutting_down" in answer
        writer.close()


async def test_pipelined_requests_on_one_connection(server: Server) -> None:
    async with on_socket(server) as sock:
        body = json.dumps(BODY).encode()
        head = (
            f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(body)}\r\n\r\n".encode()
        )
        reader, writer = await asyncio.open_connection(sock.host, sock.port)
        writer.write((head + body) * 3)
        for _ in range(3):
            head_read = await reader.readuntil(b"\r\n\r\n")
            assert b"200 OK" in head_read
            length = int(head_read.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            assert json.loads(await reader.readexactly(length))["object"] == "chat.completion"
        writer.close()
