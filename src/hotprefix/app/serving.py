"""The server's life: serve, drain on a signal, end every stream, leave."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import signal
import socket
from collections.abc import Callable, Iterator
from typing import Literal

import uvicorn
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger

from hotprefix.api.inflight import InFlight

_KEEP_ALIVE = 75
_STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class ToldServer(uvicorn.Server):
    """uvicorn without its own signal handling, which cuts streams off; calls `started` when connections
    are accepted."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._tell_started = started

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._tell_started()


class Serving:
    """Serves `app` on a bound socket until told to stop.

    Running requests get `drain_timeout` seconds to finish, and then `last_words` seconds to send
    the event that ends them.
    """

    def __init__(
        self,
        app: ASGIApp,
        inflight: InFlight,
        log: FilteringBoundLogger,
        *,
        drain_timeout: float,
        last_words: float = 5.0,
    ) -> None:
        self._app = app
        self._inflight = inflight
        self._log = log
        self._drain_timeout = drain_timeout
        self._last_words = last_words
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()

    def stop(self) -> None:
        """Drain; told a second time, end what is still running at once."""
        if self._stop.is_set():
            self._hurry.set()
        self._stop.set()

    async def run(self, sock: socket.socket, started: Callable[[], None]) -> None:
        """Serve until stopped; `started` is called when connections are accepted."""
        server = ToldServer(server_config(self._app), started)
        drainer = asyncio.create_task(self._drain(server))
        try:
            await server.serve(sockets=[sock])
        finally:
            drainer.cancel()
            await asyncio.wait([drainer])

    @contextlib.contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """SIGTERM and SIGINT call `stop`; only in the main thread."""
        loop = asyncio.get_running_loop()
        for number in _STOP_SIGNALS:
            loop.add_signal_handler(number, self.stop)
        try:
            yield
        finally:
            for number in _STOP_SIGNALS:
                loop.remove_signal_handler(number)

    async def _drain(self, server: uvicorn.Server) -> None:
        await self._stop.wait()
        self._inflight.drain()
        self._log.info("draining", in_flight=self._inflight.count, timeout_s=self._drain_timeout)
        if not await self._idle_or_hurry():
            self._log.warning("ending what is still running", in_flight=self._inflight.count)
            self._inflight.abort_all()
            await self._inflight.idle(self._last_words)
        server.should_exit = True

    async def _idle_or_hurry(self) -> bool:
        idle = asyncio.create_task(self._inflight.idle(self._drain_timeout))
        hurry = asyncio.create_task(self._hurry.wait())
        await asyncio.wait({idle, hurry}, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        if idle.done():
            return idle.result()
        idle.cancel()
        return False


def server_config(app: ASGIApp) -> uvicorn.Config:
    """How this server speaks HTTP."""
    return uvicorn.Config(
        app,
        http=_protocol(),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        server_header=False,
        timeout_keep_alive=_KEEP_ALIVE,
        timeout_graceful_shutdown=1,
    )


def _protocol() -> type[asyncio.Protocol] | Literal["h11"]:
    """httptools within bounds if it is installed, else h11, which has bounds of its own."""
    if importlib.util.find_spec("httptools") is None:
        return "h11"
    from hotprefix.app.http_protocol import BoundedHttp

    return BoundedHttp


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """uvloop's if it is installed."""
    return uvicorn.Config(app=_nothing, log_config=None).get_loop_factory()


async def _nothing(*_: object) -> None:
    raise AssertionError("never served")
