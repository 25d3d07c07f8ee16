"""All tiers as the cache uses them: nothing here blocks the caller, and nothing raises.

A writer thread encodes and stores, a reader thread reads and decodes. Where blocks go is the
placement's choice; that a tier fails is the guards' business.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import Record
from hotprefix.tiers.facts import BlockFacts, Reason
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.jobs import Act, Fetch, Store
from hotprefix.tiers.notes import BlockNotes
from hotprefix.tiers.placement import Placement, TierFacts
from hotprefix.tiers.recall import Recall
from hotprefix.tiers.runs import RunLimits, RunReader
from hotprefix.tiers.storage import BlockStorage, Fetched
from hotprefix.tiers.tier_stats import TierStats
from hotprefix.tiers.worker import Worker

__all__ = ["Fetched", "StackLimits", "TierStack"]

_NOTE_BYTES = 128
"""What a key takes in the queue."""


@dataclass(frozen=True, slots=True)
class StackLimits:
    """`queued_bytes`: of blocks that wait to be written; `fetches`: that wait to be read."""

    queued_bytes: int = 128 << 20
    fetches: int = 256
    run: RunLimits = field(default_factory=RunLimits)


class TierStack:
    """`tiers` in order, the fastest first; the stack owns and closes them. Thread-safe."""

    def __init__(
        self,
        tiers: Sequence[GuardedStore],
        storage: BlockStorage,
        clock: Clock,
        placement: Placement | None = None,
        limits: StackLimits | None = None,
    ) -> None:
        limits = limits or StackLimits()
        self._tiers = list(tiers)
        self._storage = storage
        self._clock = clock
        self._placement = placement or Placement()
        self._notes = BlockNotes(clock)
        self._recall = Recall(clock)
        self._lock = Lock()
        self._pending: dict[BlockKey, Store] = {}
        self._dropped = 0
        self._reads = RunReader(
            self._tiers, storage, clock, limits.run, self._waiting, self._found, self._useless
        )
        for tier in self._tiers:
            tier.spill_to(partial(self._overflow, tier))
        self._writer = Worker("tiers-writer", limits.queued_bytes, self._sync)
        self._reader = Worker("tiers-reader", limits.fetches)

    @property
    def dropped(self) -> int:
        """Blocks that a tier would have taken and there was no room for on the way, or no time at the end."""
        return self._dropped

    @property
    def failed(self) -> int:
        """Jobs of the threads that ended in an error which no tier raised: bugs."""
        return self._writer.failed + self._reader.failed

    @property
    def has_room(self) -> bool:
        """Whether one more block could wait to be written."""
        return self._writer.has_room(self._storage.block_bytes)

    def after_writes(self, call: Callable[[], object]) -> None:
        """Have `call` made on the writer thread once all that waits now is written, or never if it ends."""
        self._writer.offer(Act(call), 0)

    def store(
        self,
        key: BlockKey,
        position: int,
        tokens: int,
        read: Callable[[], NDArray[np.uint8]],
        facts: BlockFacts,
    ) -> bool:
        """Have a block written to the tiers that take it and lack it; whether there was a need and room.

        `read` gives its bytes, uint8 [block bytes], which belong to the stack from then on. It is called
        at once, or never.
        """
        self._notes.note(key, facts)
        for tier in self._tiers:
            tier.touch((key,))
        known = self._notes.facts(key, facts.reason)
        if self._is_pending(key, facts) or not self._placement.admit(known, self._views(key)):
            return False
        try:
            data = read() if self.has_room else None
        except MemoryError:
            data = None
        if data is None:
            self._drop()
            return False
        data.flags.writeable = False
        job = Store(self._write, self._cancelled, key, position, tokens, data, facts)
        with self._lock:
            self._pending[key] = job
        if not self._writer.offer(job, data.nbytes):
            self._cancelled(job)
            return False
        return True

    def promising(self, keys: Sequence[BlockKey]) -> int:
        """How many leading keys a fetch may find. Without an index, a tier may have any."""
        if any(tier.is_stuck for tier in self._tiers):
            # The reader waits for it, and whoever waits for the reader would wait in vain.
            return 0
        if any(tier.is_available for tier in self._tiers if not tier.is_indexed):
            return len(keys)
        # Only indexes are asked: this is the caller's thread, and others would be asked over the network.
        indexes = [tier.contains(keys) for tier in self._tiers if tier.is_indexed]
        for number, key in enumerate(keys):
            if not any(index[number] for index in indexes) and self._waiting(key) is None:
                return number
        return len(keys)

    def fetch(
        self,
        keys: Sequence[BlockKey],
        done: Callable[[list[Fetched]], None],
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        """Read the leading keys that are there; `done` gets them once, on the reader thread.

        [] on any failure, when too many fetches wait, when it is no longer wanted as its turn comes, and
        when the stack closes (then, after the reader's end, on this thread).
        """
        job = Fetch(self._reads.read, list(keys), done, is_wanted)
        if not self._reader.offer(job, 1):
            self._reader.refuse(job)

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        """They are wanted until then (wall clock): dropped last, and kept by all tiers that last."""
        keys = list(keys)
        self._notes.retain(keys, until)
        self._writer.offer(Act(lambda: self._retain(keys, until)), _NOTE_BYTES * len(keys))

    def flush(self, timeout: float) -> bool:
        """Wait until all that was stored so far is in its tiers; whether it is."""
        return self._writer.wait_idle(timeout)

    def close(self, timeout: float) -> None:
        """Answer waiting fetches with nothing, write what waits, save what would die with the process.

        What takes longer than `timeout` seconds is given up.
        """
        end = self._clock.now() + timeout
        self._reader.stop()
        self._reader.cancel_waiting()
        self._writer.offer(Act(lambda: self._save(end)), 0)
        self._writer.stop()
        if not self._writer.join(timeout):
            self._writer.cancel_waiting()
        ended = self._reader.join(max(0.1, end - self._clock.now())) and self._writer.join(0.1)
        if ended:
            # Under a thread that hangs in one, tiers are not closed: the process ends anyway.
            for tier in self._tiers:
                tier.close()

    def stats(self) -> dict[str, TierStats]:
        """By the tier's name."""
        return {tier.name: tier.tier_stats() for tier in self._tiers}

    def _is_pending(self, key: BlockKey, facts: BlockFacts) -> bool:
        """Whether it is on its way already; what is newly known of it goes along."""
        with self._lock:
            job = self._pending.get(key)
            if job is not None and facts.reason is Reason.EVICTED:
                self._pending[key] = replace(job, facts=facts)
            return job is not None

    def _views(self, key: BlockKey) -> list[TierFacts]:
        return [
            TierFacts(tier.name, tier.is_available, self._has(tier, key), tier.read_bandwidth)
            for tier in self._tiers
        ]

    def _has(self, tier: GuardedStore, key: BlockKey) -> bool:
        return tier.contains((key,))[0] if tier.is_indexed else self._recall.is_recent(key)

    def _waiting(self, key: BlockKey) -> Fetched | None:
        with self._lock:
            job = self._pending.get(key)
        return None if job is None else Fetched(key, job.position, job.tokens, job.data)

    # On the reader thread

    def _found(self, record: Record, source: GuardedStore) -> None:
        self._notes.hit(record.key, record.position, record.tokens)
        if not source.is_indexed:
            self._recall.remember(record.key)
        facts = self._notes.facts(record.key, Reason.FOUND_BELOW)
        names = self._placement.promote(facts, source.name, self._views(record.key))
        if names:
            self._writer.offer(Act(lambda: self._put(record, names)), len(record.payload))

    def _useless(self, key: BlockKey, source: GuardedStore) -> None:
        """A record of a codec that is not read any more would keep a better one out. What lies in a tier
        without an index may be of use to others."""
        if source.is_indexed:
            source.delete((key,))

    # On the writer thread

    def _write(self, job: Store) -> None:
        """Decided again: much may have changed while it waited."""
        try:
            with self._lock:
                job = self._pending.get(job.key, job)
            facts = self._notes.facts(job.key, job.facts.reason)
            names = self._placement.admit(facts, self._views(job.key))
            if names:
                self._put(self._storage.encode(job.key, job.position, job.tokens, job.data), names)
        except ValueError:
            # The codec keeps whole blocks only.
            self._drop()
        finally:
            with self._lock:
                self._pending.pop(job.key, None)

    def _put(self, record: Record, names: Sequence[str]) -> None:
        until = self._notes.until(record.key)
        for tier in self._tiers:
            if tier.name in names and tier.put(record):
                if not tier.is_indexed:
                    self._recall.remember(record.key)
                if until is not None:
                    tier.retain((record.key,), until)

    def _sync(self) -> None:
        """So that little is lost with the power."""
        for tier in self._tiers:
            tier.sync()

    def _overflow(self, source: GuardedStore, record: Record, retained: bool) -> None:
        facts = self._notes.facts(record.key, Reason.OVERFLOW)
        facts = replace(facts, pinned=facts.pinned or retained)
        self._put(record, self._placement.demote(facts, source.name, self._views(record.key)))

    def _retain(self, keys: Sequence[BlockKey], until: float) -> None:
        for tier in self._tiers:
            tier.retain(keys, until)

    def _save(self, end: float) -> None:
        """What is only in tiers that die with the process goes below, the most wanted first."""
        for tier in self._tiers:
            for key in tier.newest_first():
                if self._clock.now() >= end:
                    return
                (record,) = tier.get((key,))
                if record is not None:
                    facts = self._notes.facts(key, Reason.SHUTDOWN)
                    self._put(record, self._placement.demote(facts, tier.name, self._views(key)))

    def _cancelled(self, job: Store) -> None:
        self._drop()
        with self._lock:
            self._pending.pop(job.key, None)

    def _drop(self) -> None:
        with self._lock:
            self._dropped += 1
