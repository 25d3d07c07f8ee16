"""Requests to the Messages routes, and their events taken apart."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx

from tests.api.support import HELLO, Server

MESSAGES = "/v1/messages"
COUNT = "/v1/messages/count_tokens"
COMPATIBLE = "/apps/anthropic/v1/messages"
WEATHER = {
    "name": "weather",
    "description": "Tells it.",
    "input_schema": {"type": "object", "properties": {}},
}
CALL = '<tool_call>{"name": "weather", "arguments": {"city": "Paris"}}</tool_call>'

_EVENT = re.compile(r"event: (\w+)\ndata: (\{.*\})")


async def ask(server: Server, *, path: str = MESSAGES, headers: Any = None, **fields: Any) -> httpx.Response:
    """One request."""
    body = {"model": "scripted", "max_tokens": 200, "messages": HELLO} | fields
    if path.endswith("count_tokens"):
        del body["max_tokens"]
    return await server.client.post(path, json=body, headers=headers or {})


async def events(server: Server, **fields: Any) -> list[dict[str, Any]]:
    """The data of a stream's events, whose names it checks."""
    response = await ask(server, stream=True, **fields)
    assert response.status_code == 200, response.text
    return taken_apart(response.text)


def taken_apart(text: str) -> list[dict[str, Any]]:
    *shown, rest = text.split("\n\n")
    assert rest == ""
    found = []
    for event in shown:
        match = _EVENT.fullmatch(event)
        assert match, event
        document = json.loads(match[2])
        assert document["type"] == match[1]
        found.append(document)
    return found


def text(words: str, ttl: str | None = None, **more: Any) -> dict[str, Any]:
    """A block, with a marker if `ttl` is given."""
    mark = {"cache_control": {"type": "ephemeral", "ttl": ttl}} if ttl else {}
    return {"type": "text", "text": words} | mark | more


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}
