"""The live stream, on a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import orjson
import pytest

from hotprefix.api.dashboard.gate import Gate
from hotprefix.api.dashboard.stream import LiveStream
from tests.api.dashboard.conftest import RULES, Site, conversation
from tests.api.support import on_socket
from tests.ledger.rows import row

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def listening(url: str, headers: dict[str, str] | None = None) -> AsyncIterator[AsyncIterator[Any]]:
    async with (
        httpx.AsyncClient(base_url=url, timeout=30, trust_env=False) as client,
        client.stream("GET", "/dashboard/api/stream", headers=headers) as response,
    ):
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        events = _events(response)
        assert await anext(events) == ("open", {})
        yield events


async def _events(response: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, orjson.loads(line.removeprefix("data: "))


async def test_a_request_is_told_as_it_is_booked(home: Site) -> None:
    async with on_socket(home.server) as socket, listening(socket.url) as events:
        await home.chat(conversation("Hello"))
        name, told = await anext(events)
        assert name == "request"
        assert told == (await home.ask("requests"))["requests"][0]
        assert RULES[:20] not in orjson.dumps(told).decode()


async def test_a_tenant_hears_its_own_only(home: Site) -> None:
    acme, other = home.key("acme"), home.key("other")
    async with on_socket(home.server) as socket, listening(socket.url, acme) as events:
        await home.chat(conversation("Not yours"), other)
        await home.chat(conversation("Yours"), acme)
        assert (await anext(events))[1]["tenant"] == "acme"


@pytest.mark.parametrize("is_busy", [False, True])
async def test_it_ends_when_the_key_opens_nothing_any_more(home: Site, is_busy: bool) -> None:
    made = home.key("acme")
    (key,) = home.tenancy.keys.list("acme")
    stream = LiveStream(Gate(home.server.service.doorman), home.recent, home.server.inflight, beat=0.01)
    sent: list[bytes] = []
    never = asyncio.Event()

    async def receive() -> dict[str, Any]:
        await never.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if len(sent) == 4:
            home.tenancy.keys.revoke(key.id)
        if is_busy and len(sent) < 100:
            home.recent.add(row(len(sent), tenant="acme"))

    headers = [(name.encode(), value.encode()) for name, value in made.items()]
    scope = {"type": "http", "client": ("10.0.0.1", 1), "headers": headers}
    async with asyncio.timeout(30):
        await stream(scope, receive, send)  # type: ignore[arg-type]
    assert sent[1].startswith(b"event: open")
    assert sent[2].startswith(b"event: request" if is_busy else b": still here")
    assert sent[-1] == b"" and len(sent) == 5  # the end comes at once


async def test_it_ends_when_the_server_drains(home: Site) -> None:
    async with on_socket(home.server) as socket, listening(socket.url) as events:
        socket.serving.stop()
        async with asyncio.timeout(10):
            assert [event async for event in events] == []


async def test_a_reader_who_goes_is_forgotten(home: Site) -> None:
    async with on_socket(home.server) as socket:
        for _ in range(20):  # more than may listen at once
            async with listening(socket.url):
                pass
        async with listening(socket.url) as events:
            await home.chat(conversation("Hello"))
            assert (await anext(events))[0] == "request"
