"""Which blocks had to make room: the evidence behind a miss."""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from hotprefix.base.ids import BlockKey
from hotprefix.kv.accounts import Outcome
from hotprefix.kv.node import Node

LOGGED = 65_536
"""Keys that are remembered: 2 million tokens in blocks of 32, at about 200 bytes a key."""


class _Departure(NamedTuple):
    """`back` is the moment at which the block was there again; 0 while it is not."""

    cause: Outcome
    back: int


_FOR_ROOM = _Departure(Outcome.CAPACITY, 0)
_OVER_CEILING = _Departure(Outcome.CEILING, 0)


class EvictionLog:
    """The newest evictions, by block key; older ones are forgotten, which `is_complete` tells.

    Written on the engine's thread. `moment`, `cause`, `len` and `is_complete` may be asked on any: each
    is a single look at a C table with keys of bytes, which no write can be in the middle of.
    """

    def __init__(self, limit: int = LOGGED) -> None:
        self._limit = limit
        self._gone: OrderedDict[BlockKey, _Departure] = OrderedDict()
        self._moment = 0
        self._is_complete = True

    def __len__(self) -> int:
        """Keys that are remembered."""
        return len(self._gone)

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
        departure = self._gone.get(key)
        if departure is None or 0 < departure.back <= since:
            return None
        return departure.cause

    def evicted(self, node: Node) -> None:
        """A block makes room."""
        self._moment += 1
        gone, key, account = self._gone, node.key, node.top.account
        if key in gone:
            gone.move_to_end(key)
        # At its ceiling without this block, it was above it.
        gone[key] = _OVER_CEILING if account is not None and account.is_full else _FOR_ROOM
        if len(gone) > self._limit:
            gone.popitem(last=False)
            self._is_complete = False

    def sealed(self, node: Node) -> None:
        """A block can be found, maybe again."""
        departure = self._gone.get(node.key)
        if departure is not None and not departure.back:
            self._moment += 1
            self._gone[node.key] = _Departure(departure.cause, self._moment)
