"""Deltas of one or more engine streams, handed over in bursts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self

from starlette.types import Receive

from hotprefix.api.body import ClientGoneError
from hotprefix.engine.request import Delta

Arrival = tuple[int, Delta]
"""Which stream it came from, and what came."""


class Feed:
    """Reads streams as fast as they yield; whatever has piled up comes out together.

    Leaving the context closes every stream, which aborts those that have not ended.
    """

    def __init__(self, streams: Sequence[AsyncIterator[Delta]]) -> None:
        self._streams = streams
        self._readers: list[asyncio.Task[None]] = []
        self._arrived: list[Arrival] = []
        self._wake = asyncio.Event()
        self._running = len(streams)
        self._failure: Exception | None = None
        self._gone = False

    async def __aenter__(self) -> Self:
        self._readers = [asyncio.create_task(self._read(*pair)) for pair in enumerate(self._streams)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._cancel()
        if self._readers:
            await asyncio.wait(self._readers)

    async def require_submitted(self) -> None:
        """Raise what the engine refuses a request with, while the status can still be chosen."""
        await asyncio.sleep(0)  # every reader has run up to its first wait
        if self._failure is not None:
            raise self._failure

    def client_gone(self) -> None:
        """Nobody reads any more: close the streams now, whatever the consumer is waiting for."""
        self._gone = True
        self._cancel()
        self._wake.set()

    async def bursts(self) -> AsyncIterator[list[Arrival]]:
        """Everything that arrived since the last burst, until all streams have ended.

        Raises a stream's error after what came before it, and `ClientGoneError`.
        """
        while True:
            if self._gone:
                raise ClientGoneError
            if self._arrived:
                burst, self._arrived = self._arrived, []
                yield burst
            elif self._failure is not None:
                raise self._failure
            elif not self._running:
                return
            else:
                self._wake.clear()
                await self._wake.wait()

    def _cancel(self) -> None:
        for reader in self._readers:
            reader.cancel()

    async def _read(self, number: int, stream: AsyncIterator[Delta]) -> None:
        try:
            async for delta in stream:
                self._arrived.append((number, delta))
                self._wake.set()
        except Exception as error:  # the edge of this task: handed over to the consumer
            self._failure = self._failure or error
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()
            self._running -= 1
            self._wake.set()


@asynccontextmanager
async def watching(receive: Receive, gone: Callable[[], None]) -> AsyncIterator[None]:
    """Call `gone` as soon as the client closes the connection. The body must have been read."""

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        gone()

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()
        await asyncio.wait([watcher])
