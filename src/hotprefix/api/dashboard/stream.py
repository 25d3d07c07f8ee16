"""Requests as they end, as server-sent events."""

from __future__ import annotations

import asyncio
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from hotprefix.api.dashboard.gate import Gate
from hotprefix.api.dashboard.recent import Listener, RecentRequests
from hotprefix.api.dashboard.rows import brief, columns_of
from hotprefix.api.feed import watching
from hotprefix.api.inflight import InFlight
from hotprefix.api.respond import end_events, send_events, start_events
from hotprefix.base.errors import Forbidden, Unauthenticated
from hotprefix.ledger.errors import RowRefused
from hotprefix.ledger.row import LedgerRow

_BEAT = 15.0
"""Seconds of silence after which a comment is sent."""


class LiveStream:
    """Figures and names of each request, no word of its prompt. Ends when the server drains, when the
    reader goes, and when the reader's key opens nothing any more."""

    def __init__(self, gate: Gate, recent: RecentRequests, inflight: InFlight, beat: float = _BEAT) -> None:
        self._gate = gate
        self._recent = recent
        self._inflight = inflight
        self._beat = beat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        visitor = self._gate.visitor(scope)
        self._inflight.refuse_if_draining()
        with self._recent.listening(visitor.tenant) as listener:
            await start_events(send)
            await send_events(send, _event("open", {}))
            telling = asyncio.ensure_future(self._tell(scope, listener, send))
            ending = asyncio.ensure_future(self._inflight.until_draining())

            def gone() -> None:
                telling.cancel()

            try:
                async with watching(receive, gone):
                    await asyncio.wait({telling, ending}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                telling.cancel()
                ending.cancel()
                await asyncio.wait({telling, ending})
            if not telling.cancelled() and (error := telling.exception()) is not None:
                raise error
        await end_events(send, b"")

    async def _tell(self, scope: Scope, listener: Listener, send: Send) -> None:
        while True:
            rows, missed = await listener.take(self._beat)
            try:
                self._gate.visitor(scope)
            except (Forbidden, Unauthenticated):
                return
            events = [_event("gap", {})] if missed else []
            events += [event for row in rows if (event := _told(row))]
            await send_events(send, b"".join(events) or b": still here\n\n")


def _told(row: LedgerRow) -> bytes:
    try:
        return _event("request", brief(columns_of(row)))
    except RowRefused:
        return b""


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + orjson.dumps(data) + b"\n\n"
