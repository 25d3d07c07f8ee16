"""Sending responses: plain ASGI, because a stream sends hundreds of times a second."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from starlette.types import Send

Headers = Iterable[tuple[bytes, bytes]]

_EVENT_STREAM = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-cache"),
    (b"x-accel-buffering", b"no"),
)


async def send_bytes(send: Send, status: int, body: bytes, headers: Headers) -> None:
    """A whole response; `headers` name the content type."""
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


async def send_json(send: Send, status: int, document: Any, headers: Headers = ()) -> None:
    """A whole JSON response."""
    body = orjson.dumps(document)
    await send_bytes(send, status, body, [(b"content-type", b"application/json"), *headers])


async def start_events(send: Send, headers: Headers = ()) -> None:
    """Open a stream of server-sent events."""
    await send({"type": "http.response.start", "status": 200, "headers": [*_EVENT_STREAM, *headers]})


async def send_events(send: Send, events: bytes) -> None:
    """One or more whole events."""
    await send({"type": "http.response.body", "body": events, "more_body": True})


async def end_events(send: Send, events: bytes) -> None:
    """The last events of the stream."""
    await send({"type": "http.response.body", "body": events})
