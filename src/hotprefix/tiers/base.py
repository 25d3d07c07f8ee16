"""The interface of a tier, and what it stores."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from hotprefix.base.errors import HotprefixError
from hotprefix.base.ids import BlockKey


class StoreError(HotprefixError):
    """A tier failed. Callers treat it as a miss."""


@dataclass(frozen=True, slots=True)
class Record:
    """One block outside the arena.

    `scope` (32 bytes) names model, KV format and deployment: a store drops records of others.
    `position` is that of the first token; `tokens` is how many the block holds. `payload` is what
    the codec of that name made of the block's bytes.
    """

    key: BlockKey
    scope: bytes
    codec: str
    position: int
    tokens: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class StoreStats:
    """What a tier holds; `limit` in bytes. Since the start: `dropped` records for want of room,
    and `damaged` ones that were found and are gone."""

    records: int
    bytes: int
    limit: int
    dropped: int
    damaged: int = 0


class BlockStore(Protocol):
    """One tier. Thread-safe. Every verb may raise `StoreError`; none may return wrong bytes."""

    @property
    def name(self) -> str:
        """`ram`, `disk` or `redis`."""
        ...

    @property
    def is_indexed(self) -> bool:
        """Whether `contains` answers from memory, without I/O."""
        ...

    def contains(self, keys: Sequence[BlockKey]) -> list[bool]: ...

    def get(self, keys: Sequence[BlockKey]) -> list[Record | None]:
        """The records of `keys` in their order; None for what is not here or is damaged."""
        ...

    def put(self, record: Record) -> bool:
        """Keep a record, in place of one of the same key; whether it is kept. Older ones make room.

        A record of another scope, or one larger than the tier takes, is dropped; so is one that the
        medium has no room for. Then an older one of its key stays.
        """
        ...

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        """Drop these last: they are wanted until then (wall clock, Unix seconds). Not persistent.

        Keys that are not here are left alone.
        """
        ...

    def delete(self, keys: Sequence[BlockKey]) -> None: ...

    def stats(self) -> StoreStats: ...

    def close(self) -> None: ...


@runtime_checkable
class LastingStore(Protocol):
    """What a tier on a medium has besides."""

    def sync(self) -> None:
        """Wait until the medium has all that was put. Raises `StoreError`."""
        ...


Spill = Callable[[Record, bool], None]
"""Gets a record that has to go for want of room, and whether it was retained."""


@runtime_checkable
class VolatileStore(Protocol):
    """What a tier that dies with the process has besides, so that its records can go elsewhere."""

    def spill_to(self, spill: Spill) -> None:
        """Hand every record that has to go to `spill`, on the thread that put the one too many."""
        ...

    def newest_first(self) -> list[BlockKey]:
        """All keys, those that are wanted longest first."""
        ...

    def touch(self, keys: Sequence[BlockKey]) -> None:
        """They were in use elsewhere until now, so they go later. Unknown ones are left alone."""
        ...
