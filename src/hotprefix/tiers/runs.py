"""Reading a run of blocks: as many leading keys as the tiers have, in pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import Record
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.storage import BlockStorage, Fetched

PIECE = 8
"""Blocks whose encoded bytes are in memory at the same time."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """A run ends when its decoded blocks would be more than so many bytes, or after so many seconds
    (a piece that is being read is finished: a tier's own time-out bounds it)."""

    most_bytes: int = 1 << 30
    most_seconds: float = 10.0


class RunReader:
    """`pending` gives a block that is on its way into a tier; `found` learns of each record that a
    tier had, as record and tier, and `useless` of each that can't be decoded."""

    def __init__(
        self,
        tiers: Sequence[GuardedStore],
        storage: BlockStorage,
        clock: Clock,
        limits: RunLimits,
        pending: Callable[[BlockKey], Fetched | None],
        found: Callable[[Record, GuardedStore], None],
        useless: Callable[[BlockKey, GuardedStore], None],
    ) -> None:
        self._tiers = tiers
        self._storage = storage
        self._clock = clock
        self._limits = limits
        self._pending = pending
        self._found = found
        self._useless = useless

    def read(self, keys: Sequence[BlockKey]) -> list[Fetched]:
        """The blocks of the leading keys, each beginning where the one before it ends."""
        run: list[Fetched] = []
        end = self._clock.now() + self._limits.most_seconds
        most = max(1, self._limits.most_bytes // self._storage.block_bytes)
        keys = keys[:most]
        for start in range(0, len(keys), PIECE):
            piece = keys[start : start + PIECE]
            if start and self._clock.now() >= end:
                break
            if not self._extend(run, piece):
                break
        return run

    def _extend(self, run: list[Fetched], keys: Sequence[BlockKey]) -> bool:
        """Add the blocks of `keys` up to the first that is missing; whether none was."""
        waiting = [self._pending(key) for key in keys]
        records = self._records([key for key, block in zip(keys, waiting, strict=True) if block is None])
        rows = iter(self._storage.room(len(records)))
        for key, waited in zip(keys, waiting, strict=True):
            found = records.get(key)
            block = waited if found is None else self._storage.decode(key, found[0], next(rows))
            if block is None and found is not None:
                self._useless(key, found[1])
            if block is None or not _continues(run, block):
                return False
            if found is not None:
                self._found(*found)
            run.append(block)
        return True

    def _records(self, keys: Sequence[BlockKey]) -> dict[BlockKey, tuple[Record, GuardedStore]]:
        """What the tiers have of them; each is asked only for what those before it lack."""
        found: dict[BlockKey, tuple[Record, GuardedStore]] = {}
        for tier in self._tiers:
            missing = [key for key in keys if key not in found]
            if tier.is_indexed:
                known = tier.contains(missing)
                missing = [key for key, is_here in zip(missing, known, strict=True) if is_here]
            if not missing:
                continue
            for key, record in zip(missing, tier.get(missing), strict=True):
                if record is not None:
                    found[key] = record, tier
        return found


def _continues(run: Sequence[Fetched], block: Fetched) -> bool:
    return not run or block.position == run[-1].position + run[-1].tokens
