"""A server in another thread, for client packages that block."""

from __future__ import annotations

import asyncio
import threading

from hotprefix.base.clock import Clock
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import Server, in_process, on_socket


class Remote:
    """Serves a scripted engine on a real socket while it is entered."""

    def __init__(
        self,
        engine: ScriptedEngine | None = None,
        *,
        profile: str = "hotprefix",
        clock: Clock | None = None,
    ) -> None:
        self.engine = engine or ScriptedEngine()
        self.server: Server | None = None
        self.url = ""
        self._profile = profile
        self._clock = clock
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._up = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Remote:
        self._thread.start()
        assert self._up.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        async with (
            in_process(self.engine, profile=self._profile, clock=self._clock) as self.server,
            on_socket(self.server) as sock,
        ):
            self.url = sock.url
            self._up.set()
            await self._stop.wait()
