"""Keys that a tier without an index was seen to have, not long ago."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey

RECALL_SECONDS = 600.0
MOST_KEYS = 1 << 16


class Recall:
    """Saves writing again what is there. Thread-safe and bounded.

    The tier may have dropped a key meanwhile: then it is written again when this is forgotten.
    """

    def __init__(self, clock: Clock, seconds: float = RECALL_SECONDS, most: int = MOST_KEYS) -> None:
        self._clock = clock
        self._seconds = seconds
        self._most = most
        self._lock = Lock()
        self._seen: OrderedDict[BlockKey, float] = OrderedDict()

    def remember(self, key: BlockKey) -> None:
        """The tier has it now."""
        with self._lock:
            self._seen[key] = self._clock.now()
            self._seen.move_to_end(key)
            if len(self._seen) > self._most:
                self._seen.popitem(last=False)

    def is_recent(self, key: BlockKey) -> bool:
        """Whether it was there a short while ago."""
        with self._lock:
            seen = self._seen.get(key)
        return seen is not None and self._clock.now() - seen < self._seconds
