"""Answers on the address while the model loads, so that probes and clients are told to wait."""

from __future__ import annotations

import asyncio
import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn

from hotprefix.api.starting import StartingApp
from hotprefix.app.listen import listen
from hotprefix.app.serving import ToldServer, loop_factory, server_config

_PATIENCE = 5.0
"""Seconds for the thread to come and to go."""
_LAST_WORDS = 0.5
"""Seconds for a client that has connected to ask: its connection is closed after the answer."""


class _Usher(ToldServer):
    """Takes no more connections first; those that are there get their answers before they are closed."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        until = loop.time() + _LAST_WORDS
        while self.server_state.connections and loop.time() < until:
            await asyncio.sleep(0.005)
        await super().shutdown(sockets)


class WaitingRoom:
    """Serves `StartingApp` on a thread of its own: loading keeps the main thread, where Ctrl-C ends it.

    The listening socket is shared: who connects while the room closes is served by what comes after it.
    Raises `CannotListenError`.
    """

    def __init__(self, sock: socket.socket) -> None:
        listen(sock)
        self._sock = sock.dup()
        self._open = threading.Event()
        self._server: uvicorn.Server = _Usher(server_config(StartingApp()), self._open.set)
        self._thread = threading.Thread(target=self._serve, name="hotprefix-starting", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._open.wait(_PATIENCE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Answer what is being asked, and leave; again does nothing."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(self._server.serve(sockets=[self._sock]))
