"""The RAM tier: encoded records in the process's own memory."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import Record, Spill, StoreStats
from hotprefix.tiers.recency import Recency

OVERHEAD_BYTES = 1024
"""Counted for each record besides its payload: objects, dictionary entries, heap entries.

`tests/tiers/test_ram.py` measures that it is not less.
"""


class RamStore:
    """At most `limit` bytes of records of one scope, the least recently wanted going first."""

    def __init__(self, limit: int, scope: bytes, clock: Clock) -> None:
        self._limit = limit
        self._scope = scope
        self._clock = clock
        self._lock = Lock()
        self._records: dict[BlockKey, Record] = {}
        self._recency = Recency()
        self._bytes = 0
        self._dropped = 0
        self._spill: Spill | None = None
        self._leaving: dict[BlockKey, Record] = {}
        """Until they are where `spill` brings them: a block is never nowhere."""

    @property
    def name(self) -> str:
        return "ram"

    @property
    def is_indexed(self) -> bool:
        return True

    def spill_to(self, spill: Spill) -> None:
        self._spill = spill

    def contains(self, keys: Sequence[BlockKey]) -> list[bool]:
        with self._lock:
            return [key in self._records or key in self._leaving for key in keys]

    def get(self, keys: Sequence[BlockKey]) -> list[Record | None]:
        now = self._clock.now()
        with self._lock:
            found = [self._records.get(key) or self._leaving.get(key) for key in keys]
            for key in keys:
                if key in self._records:
                    self._recency.touch(key, now)
        return found

    def put(self, record: Record) -> bool:
        size = _size(record)
        with self._lock:
            if record.scope != self._scope or size > self._limit:
                self._dropped += 1
                return False
            self._remove(record.key)
            self._records[record.key] = record
            self._recency.touch(record.key, self._clock.now())
            self._bytes += size
            # The new one itself goes if all others are retained.
            victims = self._shrink()
            is_kept = record.key in self._records
            spill = self._spill
            if spill is not None:
                self._leaving.update((victim.key, victim) for victim, _ in victims)
        if spill is not None:
            self._hand_on(victims, spill)
        return is_kept

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        now = self._clock.now()
        # The order must not turn round when somebody sets the clock on the wall.
        until += now - self._clock.wall()
        with self._lock:
            for key in keys:
                self._recency.retain(key, until, now)

    def delete(self, keys: Sequence[BlockKey]) -> None:
        with self._lock:
            for key in keys:
                self._remove(key)
                self._leaving.pop(key, None)

    def newest_first(self) -> list[BlockKey]:
        with self._lock:
            return self._recency.newest_first()

    def touch(self, keys: Sequence[BlockKey]) -> None:
        now = self._clock.now()
        with self._lock:
            for key in keys:
                if key in self._records:
                    self._recency.touch(key, now)

    def stats(self) -> StoreStats:
        with self._lock:
            return StoreStats(len(self._records), self._bytes, self._limit, self._dropped)

    def close(self) -> None:
        with self._lock:
            self._records.clear()
            self._leaving.clear()
            self._recency = Recency()
            self._bytes = 0

    def _shrink(self) -> list[tuple[Record, bool]]:
        victims = []
        now = self._clock.now()
        while self._bytes > self._limit and (key := self._recency.oldest()) is not None:
            victims.append((self._records[key], self._recency.is_retained(key, now)))
            self._remove(key)
            self._dropped += 1
        return victims

    def _hand_on(self, victims: list[tuple[Record, bool]], spill: Spill) -> None:
        try:
            for victim, retained in victims:
                spill(victim, retained)
        finally:
            with self._lock:
                for victim, _ in victims:
                    self._leaving.pop(victim.key, None)

    def _remove(self, key: BlockKey) -> None:
        record = self._records.pop(key, None)
        if record is not None:
            self._recency.remove(key)
            self._bytes -= _size(record)


def _size(record: Record) -> int:
    return len(record.payload) + OVERHEAD_BYTES
