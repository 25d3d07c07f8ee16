"""`/v1/caches` over HTTP, and requests that name a cache."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.store import open_store
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process

pytestmark = pytest.mark.anyio

RULES = "Answer in one sentence. Be kind."
SYSTEM = {"role": "system", "content": RULES}
PREFIX = f"system: {RULES}"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


async def make(server: Server, key: str | None = None, **fields: Any) -> dict[str, Any]:
    body = {"name": "shop"} | fields
    if not {"messages", "text"} & set(body):
        body["messages"] = [SYSTEM]
    response = await server.client.post("/v1/caches", json=body, headers=auth(key))
    assert response.status_code in (200, 201), response.text
    answer: dict[str, Any] = response.json()
    return answer


def auth(key: str | None) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"} if key else {}


async def ask(server: Server, *messages: dict[str, Any], key: str | None = None, cache: str = "shop") -> Any:
    return await server.client.post(
        "/v1/chat/completions",
        json={"model": "scripted", "messages": list(messages)},
        headers=auth(key) | {"x-hotprefix-cache": cache},
    )


async def test_the_life_of_a_cache(server: Server) -> None:
    made = await make(server, ttl=600)
    assert (made["name"], made["state"], made["tokens"], made["ttl"], made["pinned"]) == (
        "shop",
        "warm",
        len(PREFIX),
        600,
        False,
    )
    assert made["computed_tokens"] + made["reused_tokens"] == made["tokens"]
    # What was computed is the prefix alone, one token was drawn, and it is pinned.
    (request,) = server.engine.seen
    assert bytes(request.prompt_ids).decode() == PREFIX
    assert request.sampling.max_tokens == 1
    assert list(server.engine.pins.values()) == [len(PREFIX)]

    listed = (await server.client.get("/v1/caches")).json()
    assert [cache["name"] for cache in listed["data"]] == ["shop"]
    read = (await server.client.get("/v1/caches/shop")).json()
    assert read["content"] == {"messages": [SYSTEM]}
    pinned = (await server.client.post("/v1/caches/shop/refresh", json={"pin": True})).json()
    assert (pinned["pinned"], pinned["expires_at"]) == (True, None)
    unpinned = (await server.client.post("/v1/caches/shop/refresh", json={"pin": False})).json()
    assert (unpinned["pinned"], unpinned["ttl"]) == (False, 3600)
    gone = await server.client.delete("/v1/caches/shop")
    assert gone.json() == {"object": "cache", "name": "shop", "deleted": True}
    assert server.engine.pins == {}
    missing = await server.client.get("/v1/caches/shop")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "cache_not_found")


async def test_made_again_it_is_200_and_takes_the_place_of_the_old_one(server: Server) -> None:
    first = await server.client.post("/v1/caches", json={"name": "shop", "messages": [SYSTEM]})
    second = await server.client.post("/v1/caches", json={"name": "shop", "text": "Once upon a time"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert second.json()["tokens"] == len("Once upon a time")
    assert len(server.engine.pins) == 1


async def test_tools_are_part_of_the_prefix(server: Server) -> None:
    made = await make(server, tools=[TOOL])
    assert made["tokens"] > len(PREFIX)
    assert b"tools: " in bytes(server.engine.seen[0].prompt_ids)


async def test_a_request_that_begins_with_it_says_so_and_renews_it(anyio_backend: str) -> None:
    clock = ManualClock(1000)
    async with in_process(ScriptedEngine(), clock=clock) as server:
        await make(server, ttl=60)
        clock.advance(50)
        response = await ask(server, SYSTEM, {"role": "user", "content": "Hi"})
        assert response.headers["x-hotprefix-cache"] == f"shop; tokens={len(PREFIX)}"
        assert "x-hotprefix-warning" not in response.headers
        clock.advance(50)
        cache = (await server.client.get("/v1/caches/shop")).json()
        assert (cache["hits"], cache["expires_at"]) == (1, 1000 + 50 + 60)
        (line,) = [line for line in server.lines() if line["path"] == "/v1/chat/completions"]
        assert line["cache"] == f"shop; tokens={len(PREFIX)}"


async def test_one_that_does_not_is_told_where_they_part(server: Server) -> None:
    await make(server)
    other = {"role": "system", "content": RULES.replace("kind", "brief")}
    response = await ask(server, other, {"role": "user", "content": "Hi"})
    at = PREFIX.index("kind")
    assert response.status_code == 200
    assert response.headers["x-hotprefix-warning"] == (
        f"x-hotprefix-cache: the prompt leaves 'shop' after {at} of {len(PREFIX)} tokens, in "
        'messages[0].content: the cache goes on with "kind.", the prompt with "brief.\\nu"'
    )
    assert "x-hotprefix-cache" not in response.headers


async def test_a_text_may_join_what_follows_with_its_last_token(server: Server) -> None:
    await make(server, text="Once upon")
    response = await server.client.post(
        "/v1/completions",
        json={"model": "scripted", "prompt": "Once upo1 a time"},
        headers={"x-hotprefix-cache": "shop"},
    )
    assert response.headers["x-hotprefix-cache"] == "shop; tokens=8"


async def test_a_name_that_is_unknown_is_no_error(server: Server) -> None:
    response = await ask(server, SYSTEM, {"role": "user", "content": "Hi"}, cache="nothing")
    assert response.status_code == 200
    assert "there is no cache 'nothing'" in response.headers["x-hotprefix-warning"]


async def test_keys_keep_caches_apart(server: Server) -> None:
    await make(server, key="one")
    response = await ask(server, SYSTEM, {"role": "user", "content": "Hi"}, key="two")
    assert "there is no cache 'shop'" in response.headers["x-hotprefix-warning"]
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/refresh")):
        answer = await server.client.request(method, f"/v1/caches/shop{path}", headers=auth("two"))
        assert answer.status_code == 404
    assert (await server.client.get("/v1/caches", headers=auth("two"))).json()["data"] == []


async def test_memory_that_was_taken_is_told_and_a_refresh_computes_again(server: Server) -> None:
    await make(server)
    server.engine.pins_fail = True
    cache = (await server.client.get("/v1/caches/shop")).json()
    assert cache["state"] == "stale"
    response = await ask(server, SYSTEM, {"role": "user", "content": "Hi"})
    assert "'shop' is stale: its memory went to a request" in response.headers["x-hotprefix-warning"]
    refused = await server.client.post("/v1/caches/shop/refresh")
    assert refused.status_code == 400
    server.engine.pins_fail = False
    assert (await server.client.post("/v1/caches/shop/refresh")).json()["state"] == "warm"


@pytest.mark.parametrize(
    ("body", "param", "says"),
    [
        ({}, "name", "Missing"),
        ({"name": "a b", "text": "x"}, "name", "pattern"),
        ({"name": "../x", "text": "x"}, "name", "pattern"),
        ({"name": "a"}, "messages", "either"),
        ({"name": "a", "text": "x", "messages": [SYSTEM]}, "messages", "either"),
        ({"name": "a", "text": "x", "ttl": 0}, "ttl", "greater than 0"),
        ({"name": "a", "text": "x", "ttl": 10**9}, "ttl", "from 1 to"),
        ({"name": "a", "text": "x", "ttl": 5, "pin": True}, "ttl", "pinned"),
        ({"name": "a", "text": "x", "tools": [TOOL]}, "text", "no tools"),
        ({"name": "a", "messages": [{"role": "system", "content": ""}]}, "messages", "no text"),
        ({"name": "a", "text": "x", "model": "gpt-9"}, "model", "not served"),
        ({"name": "a", "text": "x" * 5000}, "prompt", "fit"),
    ],
)  # fmt: skip
async def test_bad_requests_name_the_field(
    server: Server, body: dict[str, Any], param: str, says: str
) -> None:
    response = await server.client.post("/v1/caches", json=body)
    error = response.json()["error"]
    assert response.status_code in (400, 404), error
    assert error["param"] == param
    assert says in error["message"]
    assert server.engine.pins == {}


async def test_limits_are_409(server: Server) -> None:
    for name in ("one", "two", "three"):
        await make(server, name=name)
    response = await server.client.post("/v1/caches", json={"name": "four", "text": "x"})
    assert (response.status_code, response.json()["error"]["code"]) == (409, "cache_limit_reached")
    server.engine.pins_fail = True
    response = await server.client.post("/v1/caches", json={"name": "one", "text": "another"})
    assert response.status_code == 409
    assert "--kv-arena" in response.json()["error"]["message"]


class Booked:
    """A server with a ledger, and what is in it."""

    def __init__(self, server: Server, ledger: Ledger) -> None:
        self.server = server
        self._ledger = ledger

    def rows(self, columns: str = "mode, computed, read, written_by_ttl, output") -> list[tuple[Any, ...]]:
        self._ledger.flush()
        return list(self._ledger.store.query(f"SELECT {columns} FROM ledger_request ORDER BY at"))


@asynccontextmanager
async def booked(folder: Path, profile: str) -> AsyncIterator[Booked]:
    ledger = Ledger(open_store(folder / "ledger.sqlite3"))
    async with in_process(ScriptedEngine(), profile=profile, ledger=ledger) as server:
        yield Booked(server, ledger)
    ledger.close()


LONG = [{"role": "system", "content": "x" * (1100 - len("system: "))}]


async def test_making_one_is_booked_once_as_an_explicit_cache(tmp_path: Path) -> None:
    async with booked(tmp_path, "dashscope-2026-03") as world:
        await make(world.server, messages=LONG)
        columns = "dialect, status, prompt, money_pico, finish"
        assert world.rows(columns) == [("/v1/caches", 201, 1100, 1_100_000_000, "length")]
        assert world.rows() == [("explicit", 0, 0, '{"5m":1100}', 0)]
        # Nothing is made by these, and nothing is billed.
        await make(world.server, messages=LONG, ttl=60)
        await world.server.client.post("/v1/caches/shop/refresh", json={"ttl": 90})
        await world.server.client.get("/v1/caches/shop")
        assert len(world.rows()) == 1
        await make(world.server, messages=[{"role": "system", "content": "y" * 1200}])
        assert world.rows("status")[1:] == [(200,)]
        line = world.server.lines()[0]
        assert (line["prompt_tokens"], line["completion_tokens"]) == (1100, 0)
        # It holds what its name holds, and no entry beside it.
        await world.server.client.delete("/v1/caches/shop")
        assert world.server.engine.pins == {}


@pytest.mark.parametrize(
    ("profile", "fields", "booked_as"),
    [
        ("dashscope-2026-03", {"messages": [SYSTEM]}, ("explicit", len(PREFIX), 0, "{}", 0)),
        ("dashscope-2026-03", {"text": "x" * 1200}, ("explicit", 0, 0, '{"5m":1200}', 0)),
        ("openai-2026-09", {"text": "x" * 2400}, ("implicit", 1248, 1152, "{}", 0)),
        ("openai-2026-09", {"messages": LONG}, ("implicit", 1100, 0, "{}", 0)),
        ("anthropic-2026-09", {"messages": LONG, "ttl": 200}, ("explicit", 0, 0, '{"5m":1100}', 0)),
        ("anthropic-2026-09", {"messages": LONG, "ttl": 301}, ("explicit", 0, 0, '{"1h":1100}', 0)),
        ("anthropic-2026-09", {"messages": LONG, "pin": True}, ("explicit", 0, 0, '{"1h":1100}', 0)),
    ],
)
async def test_each_vendor_bills_in_its_own_way(
    tmp_path: Path, profile: str, fields: dict[str, Any], booked_as: tuple[Any, ...]
) -> None:
    async with booked(tmp_path, profile) as world:
        await make(world.server, **fields)
        assert world.rows() == [booked_as]


async def test_a_cache_that_is_refused_is_not_booked(tmp_path: Path) -> None:
    async with booked(tmp_path, "hotprefix") as world:
        world.server.engine.pins_fail = True
        response = await world.server.client.post("/v1/caches", json={"name": "a", "messages": LONG})
        assert response.status_code == 409
        assert world.rows() == []
