"""Every stream that has begun ends with exactly one last word of its dialect, however it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import orjson
import pytest

from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import HELLO, Server, in_process

pytestmark = pytest.mark.anyio

Events = list[dict[str, Any]]
SAID = {"model": "scripted", "messages": HELLO, "stream": True}


def read(text: str) -> Events:
    """The data of each event, in order; OpenAI's `[DONE]` as an event of that type."""
    events: Events = []
    for block in text.split("\n\n")[:-1]:
        (data,) = [line[5:].strip() for line in block.split("\n") if line.startswith("data:")]
        events.append({"type": "[DONE]"} if data == "[DONE]" else orjson.loads(data))
    assert text.endswith("\n\n")
    return events


def done(event: dict[str, Any]) -> bool:
    return event.get("type") == "[DONE]"


def typed(*types: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["type"] in types


def native(event: dict[str, Any]) -> bool:
    return "code" in event or event["output"]["finish_reason"] != "null"


@dataclass(frozen=True)
class Dialect:
    path: str
    body: dict[str, Any]
    is_last: Callable[[dict[str, Any]], bool]
    tells_of_failure: Callable[[dict[str, Any]], bool] = lambda event: "error" in event
    headers: tuple[tuple[str, str], ...] = ()


RESPONSE_ENDS = typed("response.completed", "response.incomplete", "response.failed")
RESPONSE_FAILS = typed("response.failed")
RESPONSE = {"model": "scripted", "input": "Hello", "stream": True}
DIALECTS = [
    Dialect("/v1/chat/completions", SAID, done),
    Dialect("/compatible-mode/v1/chat/completions", SAID, done),
    Dialect("/v1/completions", {"model": "scripted", "prompt": "Hello", "stream": True}, done),
    Dialect("/v1/responses", RESPONSE, RESPONSE_ENDS, RESPONSE_FAILS),
    Dialect("/compatible-mode/v1/responses", RESPONSE, RESPONSE_ENDS, RESPONSE_FAILS),
    Dialect("/v1/messages", SAID | {"max_tokens": 50}, typed("message_stop", "error"), typed("error")),
    Dialect(
        "/api/v1/services/aigc/text-generation/generation",
        {"model": "scripted", "input": {"messages": HELLO}},
        native,
        lambda event: "code" in event,
        (("x-dashscope-sse", "enable"),),
    ),
]


async def answered(server: Server, dialect: Dialect) -> str:
    response = await server.client.post(dialect.path, json=dialect.body, headers=dict(dialect.headers))
    assert response.status_code == 200
    return response.text


async def fails(server: Server, dialect: Dialect) -> str:
    server.engine.fail_after = 3
    return await answered(server, dialect)


async def is_cut_off(server: Server, dialect: Dialect) -> str:
    """By a server that stops."""
    server.engine.hold_after = 2
    running = asyncio.create_task(answered(server, dialect))
    await server.engine.held.wait()
    server.inflight.abort_all()
    return await running


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.path)
@pytest.mark.parametrize("fate", [answered, fails, is_cut_off])
async def test_there_is_one_last_word(dialect: Dialect, fate: Callable[[Server, Dialect], Any]) -> None:
    async with in_process(ScriptedEngine(lambda prompt: "Well, well.")) as server:
        events = read(await fate(server, dialect))
        assert [place for place, event in enumerate(events) if dialect.is_last(event)] == [len(events) - 1]
        assert sum(map(dialect.tells_of_failure, events)) == (0 if fate is answered else 1)
        assert server.engine.in_flight == 0
        assert server.inflight.count == 0


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.path)
async def test_what_fails_before_the_first_word_has_a_status(dialect: Dialect) -> None:
    async with in_process(ScriptedEngine(lambda prompt: "Well, well.")) as server:
        server.engine.fail_after = 0
        response = await server.client.post(dialect.path, json=dialect.body, headers=dict(dialect.headers))
        assert response.status_code == 500
        assert response.headers["content-type"] == "application/json"
        assert "secret reason" not in response.text
