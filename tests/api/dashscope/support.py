"""Requests to the native routes, and their events taken apart."""

from __future__ import annotations

import json
import re
from typing import Any

import httpx

from tests.api.support import HELLO, Server

TEXT = "/api/v1/services/aigc/text-generation/generation"
MULTIMODAL = "/api/v1/services/aigc/multimodal-generation/generation"
SSE = {"X-DashScope-SSE": "enable"}
EPHEMERAL = {"type": "ephemeral"}

_EVENT = re.compile(r"id:(\d+)\nevent:(result|error)\n:HTTP_STATUS/(\d+)\ndata:(\{.*\})")


async def generate(
    server: Server,
    *,
    messages: Any = HELLO,
    path: str = TEXT,
    headers: dict[str, str] | None = None,
    **parameters: Any,
) -> httpx.Response:
    """One request in the native form."""
    body = {"model": "scripted", "input": {"messages": messages}, "parameters": parameters}
    return await server.client.post(path, json=body, headers=headers or {})


async def events(server: Server, **fields: Any) -> list[dict[str, Any]]:
    """The documents of a stream; checks every byte around them."""
    response = await generate(server, headers=SSE | fields.pop("headers", {}), **fields)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    return [document for kind, _, document in taken_apart(response.text) if kind == "result"]


def taken_apart(text: str) -> list[tuple[str, int, dict[str, Any]]]:
    """Kind, status and document of every event, which are numbered from 1."""
    *shown, rest = text.split("\n\n")
    assert rest == ""
    found = []
    for number, event in enumerate(shown, start=1):
        match = _EVENT.fullmatch(event)
        assert match, event
        assert int(match[1]) == number
        found.append((match[2], int(match[3]), json.loads(match[4])))
    return found


def marked(text: str) -> list[dict[str, Any]]:
    """Content with a cache marker at its end."""
    return [{"text": text, "cache_control": EPHEMERAL}]
