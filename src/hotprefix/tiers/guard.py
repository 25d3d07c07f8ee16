"""A tier that never fails: any failure is a miss, and one that fails again and again is left alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import BlockStore, LastingStore, Record, Spill, StoreStats, VolatileStore
from hotprefix.tiers.breaker import Breaker, BreakerRules, Leave
from hotprefix.tiers.tier_stats import TierStats, bandwidth


class GuardedStore:
    """`BlockStore` around another. No verb raises; `stats` and `tier_stats` need no I/O.

    `complain` gets a sentence when the tier is left alone for the first time, and when it is used again.
    """

    def __init__(
        self,
        inner: BlockStore,
        clock: Clock,
        rules: BreakerRules | None = None,
        complain: Callable[[str], None] | None = None,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._rules = rules or BreakerRules()
        self._breaker = Breaker(clock, self._rules)
        self._complain = complain
        self._is_said_to_rest = False
        self._lock = Lock()
        self._reads: dict[object, float] = {}
        """When those began that have not come back."""
        self._last_error = ""
        self._hits = self._misses = self._errors = self._skipped = 0
        self._read_bytes = self._written_records = self._written_bytes = 0
        self._read_seconds = self._write_seconds = 0.0
        self._stats = StoreStats(0, 0, 0, 0)

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def is_indexed(self) -> bool:
        return self._inner.is_indexed

    @property
    def is_available(self) -> bool:
        """Whether a call would be made now."""
        return self._breaker.lets_in and not self.is_stuck

    @property
    def is_stuck(self) -> bool:
        """Whether somebody waits for a read that may never come back, as on a network file system."""
        with self._lock:
            first = min(self._reads.values(), default=None)
        return first is not None and self._clock.now() - first > self._rules.stuck_seconds

    @property
    def read_bandwidth(self) -> float | None:
        """Payload bytes a second, once enough was read to tell."""
        with self._lock:
            return bandwidth(self._read_bytes, self._read_seconds)

    def contains(self, keys: Sequence[BlockKey]) -> list[bool]:
        if self.is_indexed and not self.is_available:
            # The index would still answer, but the block could not be read.
            return [False] * len(keys)
        found = [False] * len(keys)
        # An index says nothing about the medium: its good answers must not close the breaker.
        with self._noted() if self.is_indexed else self._call() as may:
            if may:
                found = self._inner.contains(keys)
        return found

    def get(self, keys: Sequence[BlockKey]) -> list[Record | None]:
        records: list[Record | None] = [None] * len(keys)
        start = self._clock.now()
        with self._call() as may, self._reading(start):
            if may:
                records = self._inner.get(keys)
        seconds = self._clock.now() - start
        found = [record for record in records if record is not None]
        with self._lock:
            self._hits += len(found)
            self._misses += len(keys) - len(found)
            if found:
                self._read_bytes += sum(len(record.payload) for record in found)
                self._read_seconds += seconds
        return records

    def put(self, record: Record) -> bool:
        is_kept = False
        start = self._clock.now()
        with self._call() as may:
            if may:
                is_kept = self._inner.put(record)
        seconds = self._clock.now() - start
        if is_kept:
            with self._lock:
                self._written_records += 1
                self._written_bytes += len(record.payload)
                self._write_seconds += seconds
        return is_kept

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        with self._call() as may:
            if may:
                self._inner.retain(keys, until)

    def delete(self, keys: Sequence[BlockKey]) -> None:
        with self._call() as may:
            if may:
                self._inner.delete(keys)

    def spill_to(self, spill: Spill) -> None:
        """Hand on what the tier has no room for, if it is a volatile one."""
        if isinstance(self._inner, VolatileStore):
            self._inner.spill_to(spill)

    def newest_first(self) -> list[BlockKey]:
        """The keys of a volatile tier; none of one that outlives the process."""
        return self._inner.newest_first() if isinstance(self._inner, VolatileStore) else []

    def touch(self, keys: Sequence[BlockKey]) -> None:
        """Tell a volatile tier that they were in use until now."""
        if isinstance(self._inner, VolatileStore):
            self._inner.touch(keys)

    def sync(self) -> None:
        """Have the medium take what was put, if the tier has one."""
        if isinstance(self._inner, LastingStore):
            with self._call() as may:
                if may:
                    self._inner.sync()

    def stats(self) -> StoreStats:
        with self._noted():
            self._stats = self._inner.stats()
        return self._stats

    def tier_stats(self) -> TierStats:
        """Contents and counters."""
        inner = self.stats()
        with self._lock:
            return TierStats(
                name=self.name,
                records=inner.records,
                bytes=inner.bytes,
                limit=inner.limit,
                dropped=inner.dropped,
                damaged=inner.damaged,
                hits=self._hits,
                misses=self._misses,
                errors=self._errors,
                skipped=self._skipped,
                read_bytes=self._read_bytes,
                read_seconds=self._read_seconds,
                written_records=self._written_records,
                written_bytes=self._written_bytes,
                write_seconds=self._write_seconds,
                is_open=self._breaker.is_open,
                last_error=self._last_error,
            )

    def close(self) -> None:
        with self._noted():
            self._inner.close()

    @contextmanager
    def _call(self) -> Iterator[bool]:
        """Whether to make the call; what it raises ends here, and the breaker learns how it went."""
        how = self._breaker.enter()
        if how is Leave.NO_CALL:
            with self._lock:
                self._skipped += 1
            yield False
            return
        start = self._clock.now()
        has_failed = True
        with self._noted():
            try:
                yield True
            except BaseException:
                self._breaker.leave(how, None)
                raise
            self._breaker.leave(how, self._clock.now() - start)
            has_failed = False
        slow = f"calls take longer than {self._rules.slow_seconds:g} s"
        self._tell(self._last_error if has_failed else slow)

    @contextmanager
    def _reading(self, start: float) -> Iterator[None]:
        mark = object()
        with self._lock:
            self._reads[mark] = start
        try:
            yield
        finally:
            with self._lock:
                del self._reads[mark]

    def _tell(self, why: str) -> None:
        """Say what has changed: no request fails with a tier, so nobody would notice."""
        rests = self._breaker.is_open
        with self._lock:
            is_new, self._is_said_to_rest = rests is not self._is_said_to_rest, rests
        if is_new and self._complain is not None:
            state = f"is left alone for a while: {why.rstrip('.')}" if rests else "is used again"
            self._complain(f"The {self.name} tier {state}.")

    @contextmanager
    def _noted(self) -> Iterator[bool]:
        try:
            yield True
        except Exception as error:
            # Whatever is wrong with a tier, even a bug in it, must not reach a request.
            with self._lock:
                self._errors += 1
                self._last_error = f"{type(error).__name__}: {error}"
