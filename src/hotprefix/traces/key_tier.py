"""The tier behind the arena: which blocks it would hold."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from hotprefix.base.ids import BlockKey


class KeyTier:
    """Keeps the `capacity` blocks that were evicted or read last. What is read stays."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.dropped = 0
        self._keys: OrderedDict[BlockKey, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._keys)

    def keep(self, key: BlockKey) -> None:
        """Take over a block that the arena gives up."""
        self._keys[key] = None
        self._keys.move_to_end(key)
        if len(self._keys) > self.capacity:
            self._keys.popitem(last=False)
            self.dropped += 1

    def find(self, keys: Sequence[BlockKey], start: int) -> int:
        """How many blocks in a row from `start` on are here; they are used."""
        end = start
        while end < len(keys) and keys[end] in self._keys:
            self._keys.move_to_end(keys[end])
            end += 1
        return end - start
