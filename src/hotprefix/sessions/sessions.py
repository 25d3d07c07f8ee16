"""Stored responses from the event loop's side: every access is on one worker thread."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from hotprefix.base.clock import Clock
from hotprefix.sessions.errors import SessionsUnavailable
from hotprefix.sessions.limits import DEFAULT_LIMITS, StoreLimits
from hotprefix.sessions.response import Chain, StoredResponse, Tombstone
from hotprefix.sessions.store import ResponseStore

_T = TypeVar("_T")


class Sessions:
    """All verbs raise `SessionsUnavailable` if the file or its disk fails. `close` waits for the last one."""

    def __init__(self, path: Path | None, clock: Clock, limits: StoreLimits = DEFAULT_LIMITS) -> None:
        self._store = ResponseStore(path, clock, limits)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="hotprefix-sessions")

    async def save(self, response: StoredResponse) -> StoredResponse:
        """As `ResponseStore.save`."""
        return await self._run(lambda: self._store.save(response))

    async def load(self, tenant: str, response_id: str) -> StoredResponse | Tombstone | None:
        """As `ResponseStore.load`."""
        return await self._run(lambda: self._store.load(tenant, response_id))

    async def chain(self, tenant: str, response_id: str) -> Chain:
        """As `ResponseStore.chain`."""
        return await self._run(lambda: self._store.chain(tenant, response_id))

    async def delete(self, tenant: str, response_id: str) -> bool:
        """As `ResponseStore.delete`."""
        return await self._run(lambda: self._store.delete(tenant, response_id))

    async def count(self, tenant: str | None = None) -> tuple[int, int]:
        """As `ResponseStore.count`."""
        return await self._run(lambda: self._store.count(tenant))

    async def purge(self) -> int:
        """As `ResponseStore.purge`."""
        return await self._run(self._store.purge)

    def close(self) -> None:
        self._worker.shutdown()
        self._store.close()

    async def _run(self, work: Callable[[], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except sqlite3.Error as error:
            raise SessionsUnavailable(
                f"Stored responses can't be reached: {error}. Send store: false and the whole conversation "
                "to go on without them.",
                retry_after=5,
            ) from error
