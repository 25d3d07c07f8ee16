"""A tier that fails as told, for tests of whatever stands above it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum

from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import BlockStore, Record, Spill, StoreError, StoreStats, VolatileStore
from hotprefix.tiers.record import HEADER_BYTES, DamagedRecord, RecordFormat, read_header


class Fault(Enum):
    """What is wrong with a call."""

    KILLED = "raises"
    SLOW = "waits first"
    FULL = "keeps nothing that is put"
    CORRUPT = "one bit of each record is flipped before it is decoded"


Schedule = Callable[[int], Fault | None]
"""The fault of the call of that number, counted from 0 over all verbs that do I/O."""


class FaultyStore:
    """Another store with a schedule of faults. `pause` is called by a slow one."""

    def __init__(self, inner: BlockStore, schedule: Schedule, pause: Callable[[], None]) -> None:
        self._inner = inner
        self._schedule = schedule
        self._pause = pause
        self._format = RecordFormat()
        self.calls = 0

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def is_indexed(self) -> bool:
        return self._inner.is_indexed

    def contains(self, keys: Sequence[BlockKey]) -> list[bool]:
        if not self.is_indexed:
            self._next()
        return self._inner.contains(keys)

    def get(self, keys: Sequence[BlockKey]) -> list[Record | None]:
        fault = self._next()
        records = self._inner.get(keys)
        if fault is Fault.CORRUPT:
            return [record and self._flipped(record) for record in records]
        return records

    def put(self, record: Record) -> bool:
        return self._next() is not Fault.FULL and self._inner.put(record)

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        self._next()
        self._inner.retain(keys, until)

    def delete(self, keys: Sequence[BlockKey]) -> None:
        self._next()
        self._inner.delete(keys)

    def spill_to(self, spill: Spill) -> None:
        """As the inner store does, if it is volatile."""
        if isinstance(self._inner, VolatileStore):
            self._inner.spill_to(spill)

    def newest_first(self) -> list[BlockKey]:
        """The keys of a volatile store; none of another."""
        return self._inner.newest_first() if isinstance(self._inner, VolatileStore) else []

    def touch(self, keys: Sequence[BlockKey]) -> None:
        """As the inner store does, if it is volatile."""
        if isinstance(self._inner, VolatileStore):
            self._inner.touch(keys)

    def stats(self) -> StoreStats:
        return self._inner.stats()

    def close(self) -> None:
        self._inner.close()

    def _next(self) -> Fault | None:
        fault = self._schedule(self.calls)
        self.calls += 1
        if fault is Fault.KILLED:
            raise StoreError("killed on schedule")
        if fault is Fault.SLOW:
            self._pause()
        return fault

    def _flipped(self, record: Record) -> Record | None:
        """What the bytes of a record give when one bit of them, another one each time, is wrong."""
        data = bytearray(b"".join(self._format.encode(record)))
        bit = self.calls * 7919 % (8 * len(data))
        data[bit // 8] ^= 1 << bit % 8
        header = read_header(bytes(data[:HEADER_BYTES]))
        try:
            return None if header is None else self._format.decode(header, bytes(data[HEADER_BYTES:]))
        except DamagedRecord:
            return None
