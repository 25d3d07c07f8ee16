"""A small server of the completions dialect that notes what it was asked, for tests of the client."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hotprefix.base.clock import Clock
from hotprefix.bench.client import BenchClient


class Answering:
    """Answers every request with `max_tokens` words; `asked` holds the bodies in order.

    Bodies also go to `shared_log` with the server's name, so that two servers show their order.
    """

    def __init__(self, name: str = "server", shared_log: list[tuple[str, Any]] | None = None) -> None:
        self.name = name
        self.asked: list[dict[str, Any]] = []
        self.shared_log = shared_log if shared_log is not None else []
        self.short_by = 0
        self.app = Starlette(
            routes=[
                Route("/v1/completions", self.completions, methods=["POST"]),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
            ]
        )

    async def completions(self, request: Request) -> Response:
        body = await self._note(request, "prompt")
        count = len(body["prompt"])
        if body["prompt"] == [666]:
            return JSONResponse({"error": {"message": "no such number"}}, status_code=400)
        out = body["max_tokens"] - self.short_by
        if not body.get("stream"):
            choice = {"index": 0, "text": "a " * out, "finish_reason": "length"}
            return JSONResponse({"choices": [choice], "usage": _usage(count, out)})
        broken = body["prompt"] == [667]
        return _events(_stream([{"text": "a "} for _ in range(out)], _usage(count, out), broken=broken))

    async def chat(self, request: Request) -> Response:
        body = await self._note(request, "messages")
        count = 7 + sum(len(message["content"].split()) for message in body["messages"])
        out = body["max_tokens"]
        parts = [{"delta": {"role": "assistant", "content": ""}}] + [{"delta": {"content": "b "}}] * out
        return _events(_stream(parts, _usage(count, out), broken=False))

    async def _note(self, request: Request, field: str) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        self.asked.append(body)
        self.shared_log.append((self.name, body[field]))
        return body


def _usage(prompt: int, out: int) -> dict[str, Any]:
    details = {"cached_tokens": prompt // 2}
    return {"prompt_tokens": prompt, "completion_tokens": out, "prompt_tokens_details": details}


def _stream(parts: list[dict[str, Any]], usage: dict[str, Any], *, broken: bool) -> Iterator[str]:
    for part in parts:
        yield json.dumps({"choices": [{"index": 0, "finish_reason": None, **part}]})
    if broken:
        yield json.dumps({"error": {"message": "the engine failed"}})
        return
    yield json.dumps({"choices": [{"index": 0, "text": "", "finish_reason": "length"}]})
    yield json.dumps({"choices": [], "usage": usage})
    yield "[DONE]"


def _events(events: Iterator[str]) -> Response:
    return StreamingResponse((f"data: {event}\n\n" for event in events), media_type="text/event-stream")


@asynccontextmanager
async def client_of(server: Answering, clock: Clock) -> AsyncIterator[BenchClient]:
    """A client that talks to `server` in this process."""
    transport = httpx.ASGITransport(server.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://server") as http:
        yield BenchClient(http, "model", clock)
