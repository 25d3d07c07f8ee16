"""Heads that never end: in bytes, and in time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
import uvicorn
from starlette.types import Receive, Scope, Send

from hotprefix.app.http_protocol import BoundedHttp

pytestmark = pytest.mark.anyio

MOST = 2000
HEAD = b"POST / HTTP/1.1\r\nhost: x\r\n"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class App:
    """Reads the body and answers, once `held` is set."""

    def __init__(self) -> None:
        self.held = asyncio.Event()
        self.held.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body", False):
            pass
        await self.held.wait()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@asynccontextmanager
async def connected(
    app: App, seconds: float = 60.0
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    class Small(BoundedHttp):
        most_bytes = MOST
        most_seconds = seconds

    config = uvicorn.Config(app, http=Small, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        serving = asyncio.create_task(server.serve([sock]))
        reader, writer = await asyncio.open_connection(*sock.getsockname())
        yield reader, writer
        writer.close()
        server.should_exit = True
        await serving


@pytest.mark.parametrize(
    "head", [HEAD + b"a: b\r\n" * MOST, HEAD + b"a: " + b"b" * MOST, b"GET /" + b"a" * MOST]
)
async def test_a_head_that_is_too_large(head: bytes) -> None:
    async with connected(App()) as (reader, writer):
        writer.write(head)
        assert (await reader.read()).startswith(b"HTTP/1.1 431 ")


async def test_behind_a_request_that_is_being_answered_too() -> None:
    app = App()
    app.held.clear()
    async with connected(app) as (reader, writer):
        writer.write(HEAD + b"content-length: 0\r\n\r\n")
        writer.write(HEAD + b"a: " + b"b" * MOST)
        assert b"HTTP/1.1 431 " in await reader.read()
        app.held.set()


async def test_trailers_count_as_well() -> None:
    async with connected(App()) as (reader, writer):
        writer.write(HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n" + b"a: b\r\n" * MOST)
        assert b"HTTP/1.1 400 " in await reader.read()


async def test_each_request_has_a_head_of_its_own_and_bodies_are_no_heads() -> None:
    async with connected(App()) as (reader, writer):
        padded = HEAD + b"a: " + b"b" * (MOST - 500) + b"\r\ncontent-length: 5000\r\n\r\n" + b"c" * 5000
        for _ in range(3):
            writer.write(padded)
            assert (await reader.readuntil(b"\r\n\r\nok")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("begun", [b"", HEAD])
async def test_a_head_that_does_not_come(begun: bytes) -> None:
    async with connected(App(), seconds=0.05) as (reader, writer):
        writer.write(begun)
        assert await reader.read() == b""


async def test_a_long_answer_is_not_cut_off() -> None:
    app = App()
    app.held.clear()
    async with connected(app, seconds=0.05) as (reader, writer):
        writer.write(HEAD + b"content-length: 0\r\n\r\n" + HEAD)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                assert not await reader.read(1)
        app.held.set()
        assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
        assert await reader.read() == b""
