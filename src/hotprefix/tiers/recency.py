"""Which key goes first: the one that was wanted longest ago, those that are retained last."""

from __future__ import annotations

import heapq

from hotprefix.base.ids import BlockKey


class Recency:
    """Keys by the moment until which they are wanted: their last use, or later if they are retained.

    O(log n) amortised: the heap holds outdated entries, which are skipped, and is rebuilt when they
    are the most of it. Not thread-safe. Times are seconds of one clock that never goes back.
    """

    def __init__(self) -> None:
        self._wanted: dict[BlockKey, tuple[float, int]] = {}
        self._until: dict[BlockKey, float] = {}
        self._heap: list[tuple[float, int, BlockKey]] = []
        self._count = 0

    def __len__(self) -> int:
        return len(self._wanted)

    def touch(self, key: BlockKey, now: float) -> None:
        """It is used now; a new key is added."""
        until = self._until.get(key, now)
        if until <= now:
            self._until.pop(key, None)
        self._set(key, max(now, until))

    def retain(self, key: BlockKey, until: float, now: float) -> None:
        """Keep it until then; a new time replaces an old one. An unknown key is left alone."""
        if key not in self._wanted:
            return
        if until > now:
            self._until[key] = until
        else:
            self._until.pop(key, None)
        self._set(key, max(now, until))

    def is_retained(self, key: BlockKey, now: float) -> bool:
        """Whether somebody asked to keep it longer than now."""
        return self._until.get(key, now) > now

    def remove(self, key: BlockKey) -> None:
        """Forget it."""
        self._wanted.pop(key, None)
        self._until.pop(key, None)

    def oldest(self) -> BlockKey | None:
        """The key that goes first; it stays."""
        while self._heap:
            at, count, key = self._heap[0]
            if self._wanted.get(key) == (at, count):
                return key
            heapq.heappop(self._heap)
        return None

    def newest_first(self) -> list[BlockKey]:
        """All keys, those that are wanted longest first."""
        return sorted(self._wanted, key=self._wanted.__getitem__, reverse=True)

    def _set(self, key: BlockKey, at: float) -> None:
        self._count += 1
        self._wanted[key] = (at, self._count)
        if len(self._heap) > 2 * len(self._wanted) + 64:
            self._heap = [(*place, known) for known, place in self._wanted.items()]
            heapq.heapify(self._heap)
        else:
            heapq.heappush(self._heap, (at, self._count, key))
