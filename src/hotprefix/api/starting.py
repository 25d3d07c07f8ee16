"""What is answered while the model loads: health, and that everything else has to wait."""

from __future__ import annotations

import asyncio
import contextlib

from starlette.types import Receive, Scope, Send

from hotprefix.api.body import discard
from hotprefix.api.boundary import request_id_of
from hotprefix.api.envelopes import encoded, envelope_of
from hotprefix.api.errors import problem_of
from hotprefix.api.respond import send_bytes, send_json
from hotprefix.base.errors import Unavailable

_RETRY_SECONDS = 2
_BODY_BYTES = 16 << 20
_BODY_SECONDS = 5.0


class Starting(Unavailable):
    """The model is not loaded yet."""

    code = "starting"


class StartingApp:
    """An ASGI app without state. Connections are closed after each answer: the next one is to reach the
    server that is ready by then."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request_id = request_id_of(scope)
        headers = [(b"x-request-id", request_id.encode()), (b"connection", b"close")]
        is_read = scope["method"] in ("GET", "HEAD")
        if is_read and scope["path"] == "/healthz":
            await send_json(send, 200, {"status": "ok"}, headers)
        elif is_read and scope["path"] == "/readyz":
            await send_json(send, 503, {"status": "starting"}, [*headers, (b"retry-after", b"1")])
        else:
            await _put_off(scope, receive, send, request_id, headers)


async def _put_off(
    scope: Scope, receive: Receive, send: Send, request_id: str, headers: list[tuple[bytes, bytes]]
) -> None:
    """In the words of the path's dialect, once the body has been sent: who is cut off sees no answer."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_BODY_SECONDS):
            await discard(receive, _BODY_BYTES)
    error = Starting("The server is loading its model; send the request again.", retry_after=_RETRY_SECONDS)
    problem, envelope = problem_of(error, request_id), envelope_of(scope["path"])
    headers = [(b"content-type", b"application/json"), *headers, *problem.headers]
    headers += envelope.headers(request_id)
    await send_bytes(send, envelope.status(problem), encoded(envelope, problem, request_id), headers)
