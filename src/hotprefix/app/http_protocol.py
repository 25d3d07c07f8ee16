"""HTTP/1.1 as uvicorn speaks it over httptools, with bounds on the head of a request: its size and its time.

uvicorn has neither: whoever reaches the port, with or without a key, could fill the memory with headers,
or hold connections open without ever asking. Only to be imported where httptools is installed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_TOO_LARGE = b"The head of the request is too large."
_REFUSAL = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: %d\r\n"
    b"connection: close\r\n\r\n%b"
) % (len(_TOO_LARGE), _TOO_LARGE)


class BoundedHttp(HttpToolsProtocol):
    """A larger head gets 431, a later one a closed connection.

    What is counted are the bytes of a head that has not ended, and of the trailers behind a body. A client
    that goes away is told to every request of its connection.
    """

    most_bytes = 64 * 1024
    """What h11 allows as well."""
    most_seconds = 60.0

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._in_head = False
        self._head = 0
        self._patience: asyncio.TimerHandle | None = None
        self._unanswered: deque[RequestResponseCycle] = deque()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait_no_longer()
        super().connection_lost(exc)
        # uvicorn tells the request that came last; of pipelined ones it is the first that is being answered.
        for cycle in self._unanswered:
            if not cycle.response_complete:
                cycle.disconnected = True
                cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._in_head:
            self._head += len(data)
        if self._in_head and self._head > self.most_bytes and not self.transport.is_closing():
            self.transport.write(_REFUSAL)
            self.transport.close()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head = True, 0
        self._wait()

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            self._head += len(name) + len(value)
            if self._head > self.most_bytes:
                raise ValueError("too many trailers")  # to the parser it is a bad request
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        self._wait_no_longer()
        super().on_headers_complete()
        while self._unanswered and self._unanswered[0].response_complete:
            self._unanswered.popleft()
        self._unanswered.append(self.cycle)

    def _wait(self) -> None:
        if self._patience is None:
            self._patience = self.loop.call_later(self.most_seconds, self._give_up)

    def _wait_no_longer(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._patience = None
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._wait()  # an earlier request on the same connection is still being answered
        else:
            self.transport.close()
