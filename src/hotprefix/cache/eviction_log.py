"""Which blocks had to make room: the evidence behind a miss."""

from __future__ import annotations

from typing import NamedTuple

from hotprefix.base.ids import BlockKey
from hotprefix.kv.accounts import Outcome
from hotprefix.kv.node import Node

LOGGED = 65_536
"""Most keys that are remembered: 2 million tokens in blocks of 32."""


class _Departure(NamedTuple):
    """`back` is the moment at which the block was there again; 0 while it is not."""

    cause: Outcome
    back: int


_FOR_ROOM = _Departure(Outcome.CAPACITY, 0)
_OVER_CEILING = _Departure(Outcome.CEILING, 0)


class EvictionLog:
    """The newest evictions, by block key; older ones are forgotten, which `is_complete` tells.

    Two tables take turns: when the newer one is full, it becomes the older one, whose keys are forgotten.
    So an eviction costs one entry in a table, and at least the newest `limit // 2` are known.
    Written on the engine's thread. All else may be asked on any: each look at a table is one step for
    the interpreter, which no write can be in the middle of.
    """

    def __init__(self, limit: int = LOGGED) -> None:
        self._half = max(1, limit // 2)
        self._newer: dict[BlockKey, _Departure] = {}
        self._older: dict[BlockKey, _Departure] = {}
        self._moment = 0
        self._is_complete = True

    def __len__(self) -> int:
        """Entries that are kept."""
        return len(self._newer) + len(self._older)

    @property
    def is_complete(self) -> bool:
        """Whether no eviction was forgotten yet: then a block that is not in the log was not evicted."""
        return self._is_complete

    @property
    def moment(self) -> int:
        """Now, in the log's own count of what happened."""
        return self._moment

    def cause(self, key: BlockKey, since: int) -> Outcome | None:
        """Why a block was missing at the moment `since` or later; None if it was not evicted, or back before.

        CEILING if its tenant was above its share, else CAPACITY.
        """
        departure = self._newer.get(key) or self._older.get(key)
        if departure is None or 0 < departure.back <= since:
            return None
        return departure.cause

    def evicted(self, node: Node) -> None:
        """A block makes room."""
        self._moment += 1
        newer, account = self._newer, node.top.account
        # At its ceiling without this block, its tenant was above it.
        newer[node.key] = _OVER_CEILING if account is not None and account.is_full else _FOR_ROOM
        if len(newer) >= self._half:
            self._turn()

    def sealed(self, node: Node) -> None:
        """A block can be found, maybe again."""
        departure = self._newer.get(node.key) or self._older.get(node.key)
        if departure is not None and not departure.back:
            self._moment += 1
            self._newer[node.key] = _Departure(departure.cause, self._moment)
            if len(self._newer) >= self._half:
                self._turn()

    def _turn(self) -> None:
        # In this order: who misses a key sees afterwards that some were forgotten.
        self._is_complete = self._is_complete and not self._older
        self._older = self._newer
        self._newer = {}
