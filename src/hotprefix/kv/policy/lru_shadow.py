"""What plain LRU would have had: a list of keys without blocks, to hold another policy against."""

from __future__ import annotations

from collections import OrderedDict

from hotprefix.base.ids import BlockKey


class LruShadow:
    """The keys that LRU would keep of those noted.

    A request's keys are noted from its first block on and booked by `settle`, the last first, so that
    the end of a prompt is older than its beginning, as in the tree.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = max(1, capacity)
        self._keys: OrderedDict[BlockKey, None] = OrderedDict()
        self._noted: list[BlockKey] = []
        self._forgotten: list[BlockKey] = []
        self.found = 0
        """Keys that were wanted while LRU had them."""

    def note(self, key: BlockKey) -> None:
        """A block was wanted."""
        self._noted.append(key)
        if len(self._noted) > self._capacity:
            self.settle()

    def forget(self, key: BlockKey) -> None:
        """A block has gone for no lack of room; before that it may have been wanted."""
        self._forgotten.append(key)
        if len(self._forgotten) > self._capacity:
            self.settle()

    def settle(self) -> None:
        """Book what was noted."""
        keys = self._keys
        for key in reversed(self._noted):
            if key in keys:
                self.found += 1
                keys.move_to_end(key)
            else:
                keys[key] = None
        self._noted.clear()
        for key in self._forgotten:
            keys.pop(key, None)
        self._forgotten.clear()
        while len(keys) > self._capacity:
            keys.popitem(last=False)
