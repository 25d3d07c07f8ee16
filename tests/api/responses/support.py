"""Responses over a scripted engine."""

from __future__ import annotations

import json
from typing import Any

import httpx

from tests.api.support import Server

OPENAI = "/v1/responses"
DASHSCOPE = "/compatible-mode/v1/responses"
OLD = "/api/v2/apps/protocols/compatible-mode/v1/responses"
SESSION = {"x-dashscope-session-cache": "enable"}
WEATHER: dict[str, Any] = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
CALL = '<tool_call>\n{"name": "weather",  "arguments": {"city": "Paris"}}\n</tool_call>'


async def post(server: Server, path: str = OPENAI, *, key: str = "", **fields: Any) -> httpx.Response:
    headers = dict(fields.pop("headers", {}))
    if key:
        headers["authorization"] = f"Bearer {key}"
    body = {"model": "scripted", "input": "Hello"} | fields
    return await server.client.post(path, json=body, headers=headers)


async def respond(server: Server, path: str = OPENAI, **fields: Any) -> dict[str, Any]:
    response = await post(server, path, **fields)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


async def stream(server: Server, path: str = OPENAI, **fields: Any) -> list[dict[str, Any]]:
    """A stream's events; checks its framing and numbers."""
    response = await post(server, path, stream=True, **fields)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    read = read_openai if path == OPENAI else read_dashscope
    events = read(response.text)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def read_openai(text: str) -> list[dict[str, Any]]:
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    events = []
    for block in blocks:
        name, data = block.split("\n")
        event = json.loads(data.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        events.append(event)
    return events


def read_dashscope(text: str) -> list[dict[str, Any]]:
    blocks = text.split("\n\n")
    assert blocks.pop() == ""
    events = []
    for number, block in enumerate(blocks, start=1):
        first, name, status, data = block.split("\n")
        assert (first, status) == (f"id:{number}", ":HTTP_STATUS/200")
        event = json.loads(data.removeprefix("data:"))
        assert name == f"event:{event['type']}"
        events.append(event)
    return events


def text_of(document: dict[str, Any]) -> str:
    return "".join(
        part["text"] for item in document["output"] if item["type"] == "message" for part in item["content"]
    )
