"""Which requests are being answered now: unique ids, draining, and ending the rest."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from hotprefix.base.errors import Draining
from hotprefix.base.ids import RequestId
from hotprefix.engine.front import EngineFront

_RETRY_SECONDS = 5


class InFlight:
    """Lives on the event loop's thread; nothing here is called from another one."""

    def __init__(self, engine: EngineFront) -> None:
        self._engine = engine
        self._ids: set[RequestId] = set()
        self._open = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._draining = False
        self._aborting = False
        self._drain_began = asyncio.Event()

    @property
    def draining(self) -> bool:
        """True once new requests are refused."""
        return self._draining

    @property
    def count(self) -> int:
        """Responses that have begun to be worked on and not ended."""
        return self._open

    def refuse_if_draining(self) -> None:
        """Raise `Draining` once the server is shutting down."""
        if self._draining:
            raise Draining("The server is shutting down; send the request again.", retry_after=_RETRY_SECONDS)

    def refuse_if_aborting(self) -> None:
        """Raise `Draining` if the requests in flight have been told to end."""
        if self._aborting:
            self.refuse_if_draining()

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Around the whole work on one response, sending included."""
        self.refuse_if_draining()
        self._open += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._open -= 1
            if not self._open:
                self._idle.set()

    @contextmanager
    def claim(self, wanted: str) -> Iterator[RequestId]:
        """An engine id for as long as the request runs: `wanted`, or a variant if that is taken."""
        request_id = RequestId(wanted)
        while request_id in self._ids:
            request_id = RequestId(f"{wanted}-{uuid.uuid4().hex[:8]}")
        self._ids.add(request_id)
        try:
            yield request_id
        finally:
            self._ids.discard(request_id)

    def drain(self) -> None:
        """Refuse new requests from now on."""
        self._draining = True
        self._drain_began.set()

    async def until_draining(self) -> None:
        """For answers that end only because the server does."""
        await self._drain_began.wait()

    def abort_all(self) -> None:
        """Tell every running request to end now; each still gets its terminal event."""
        self.drain()
        self._aborting = True
        for request_id in tuple(self._ids):
            self._engine.abort(request_id)

    async def idle(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for the last response to end; False if some did not."""
        try:
            async with asyncio.timeout(timeout):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True
