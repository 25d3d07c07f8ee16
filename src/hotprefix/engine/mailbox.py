"""From the engine's thread to an event loop, one wake-up for all that a step says."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from weakref import WeakKeyDictionary, ref

from hotprefix.engine.request import Delta


class Mailbox:
    """Deltas of one request. `put` is called on the engine's thread, `get` in the loop."""

    def __init__(self, office: PostOffice) -> None:
        self._office = office
        self._queue: asyncio.Queue[Delta] = asyncio.Queue()

    def put(self, delta: Delta) -> None:
        """Deliver soon; never blocks and never raises."""
        self._office.post(self._queue, delta)

    async def get(self) -> Delta:
        """The next delta."""
        return await self._queue.get()


class PostOffice:
    """Carries the deltas of all mailboxes of one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        # Weak, or the table of offices would keep every loop alive that it ever saw.
        self._loop = ref(loop)
        self._lock = threading.Lock()
        self._bag: deque[tuple[asyncio.Queue[Delta], Delta]] = deque()
        self._scheduled = False

    def post(self, queue: asyncio.Queue[Delta], delta: Delta) -> None:
        """Take a delta; wakes the loop only if it has not been woken for earlier ones."""
        with self._lock:
            self._bag.append((queue, delta))
            wake = not self._scheduled
            self._scheduled = True
        if wake:
            loop = self._loop()
            try:
                if loop is not None:
                    loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop is closed: nobody is left to read
                self._bag.clear()

    def _deliver(self) -> None:
        with self._lock:
            bag, self._bag = self._bag, deque()
            self._scheduled = False
        for queue, delta in bag:
            queue.put_nowait(delta)


class Mailboxes:
    """One post office for each loop, forgotten with it."""

    def __init__(self) -> None:
        self._offices: WeakKeyDictionary[asyncio.AbstractEventLoop, PostOffice] = WeakKeyDictionary()

    def open(self) -> Mailbox:
        """A mailbox of the running loop."""
        loop = asyncio.get_running_loop()
        office = self._offices.get(loop)
        if office is None:
            office = self._offices[loop] = PostOffice(loop)
        return Mailbox(office)
