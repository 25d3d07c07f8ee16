"""Clients that go away, and very many at once."""

from __future__ import annotations

import asyncio
import json
import resource
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from hotprefix.models.catalogue import DEFAULT_MODEL
from tests.e2e.server import CHAT, SOFT_FILES, Server, until

pytestmark = pytest.mark.model


def request(**fields: Any) -> bytes:
    messages = [{"role": "user", "content": "Count to a million, slowly."}]
    body = json.dumps({"model": DEFAULT_MODEL, "messages": messages, "temperature": 0} | fields).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


LONG = {"max_tokens": 5000, "ignore_eos": True}


@pytest.mark.parametrize("stream", [False, True])
def test_gone_while_it_is_answered(server: Server, stream: bool) -> None:
    aborted = server.metric("request_success_total", finished_reason="aborted")
    with socket.create_connection(server.address, timeout=60) as sock:
        sock.sendall(request(stream=stream, **LONG))
        until(lambda: server.busy()["running"] == 1, lambda: "it never ran")
        assert not stream or sock.recv(100)
    server.require_nothing_left()
    assert server.metric("request_success_total", finished_reason="aborted") == aborted + 1


def test_gone_while_it_waits(narrow: Server) -> None:
    with socket.create_connection(narrow.address, timeout=60) as first:
        first.sendall(request(stream=True, **LONG))
        until(lambda: narrow.busy()["running"] == 1, lambda: "it never ran")
        with socket.create_connection(narrow.address, timeout=60) as second:
            second.sendall(request(stream=True, seed=1, **LONG))
            until(lambda: narrow.busy()["waiting"] == 1, lambda: "it never waited")
            refused = narrow.post(messages=[{"role": "user", "content": "Me too."}])
            assert refused.status_code == 429
            assert refused.json()["error"]["code"] == "overloaded"
            assert refused.json()["error"]["type"] == "rate_limit_error"
            assert int(refused.headers["retry-after"]) > 0
        until(lambda: narrow.busy()["waiting"] == 0, lambda: "it waits for nobody")
        assert narrow.busy()["running"] == 1
        assert first.recv(100)
    narrow.require_nothing_left()
    assert narrow.log_lines("request")[-1]["client_gone"] is True


@pytest.fixture
def many_files() -> Iterator[None]:
    """This process is the other end of every connection."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY and hard < 4096 else max(soft, 4096)
    if wanted < 2 * SOFT_FILES:
        pytest.skip(f"only {wanted} open files are allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
def test_more_connections_than_a_process_may_open_at_first(server: Server) -> None:
    """1,100 at once: most are silent, some send slowly, some are real; the real ones are answered."""
    whole = request(max_tokens=1)
    address = server.address

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rest: bytes) -> bytes:
        writer.write(rest)
        found = await reader.read()
        writer.close()
        return found

    async def storm() -> None:
        idle = [await asyncio.open_connection(*address) for _ in range(800)]
        slow = [await asyncio.open_connection(*address) for _ in range(150)]
        for number, (_, writer) in enumerate(slow):
            writer.write(whole[: 20 + number])
        real = [await asyncio.open_connection(*address) for _ in range(150)]
        for found in await asyncio.gather(*(answer(*pair, whole) for pair in real)):
            assert b"HTTP/1.1 200" in found
        late = (answer(*pair, whole[20 + number :]) for number, pair in enumerate(slow))
        for found in await asyncio.gather(*late):
            assert b"HTTP/1.1 200" in found
        for _, writer in idle:
            writer.close()

    asyncio.run(asyncio.wait_for(storm(), 120))
    assert server.ask(messages=[{"role": "user", "content": "Still there?"}], max_tokens=1)
