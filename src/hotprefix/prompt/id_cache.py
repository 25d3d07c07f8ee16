"""Token ids of pieces of text, bounded in bytes."""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict

_ENTRY_OVERHEAD = 256
"""Bytes of bookkeeping per entry (key, array header, dictionary slot)."""


class IdCache:
    """Least-recently-used map of digests to token ids, for many threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max = max_bytes
        self._lock = threading.Lock()
        self._entries: OrderedDict[bytes, array[int]] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """Bytes that the entries take now."""
        return self._size

    def get(self, key: bytes) -> array[int] | None:
        """The ids of `key`; it counts as used."""
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: bytes, ids: array[int]) -> None:
        """Keep `ids`; an entry that is there already is replaced."""
        cost = _cost(ids)
        if cost > self._max:
            return
        with self._lock:
            old = self._entries.pop(key, None)
            if old is not None:
                self._size -= _cost(old)
            self._entries[key] = ids
            self._size += cost
            while self._size > self._max:
                self._size -= _cost(self._entries.popitem(last=False)[1])


def _cost(ids: array[int]) -> int:
    return len(ids) * ids.itemsize + _ENTRY_OVERHEAD
