"""Values that many snapshots share, counted once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class SharedPool(Generic[Value]):
    """Holds each value once for as long as someone holds its key; `size` is the bytes of all."""

    def __init__(self, size_of: Callable[[Value], int]) -> None:
        self._size_of = size_of
        self._held: dict[bytes, tuple[Value, int]] = {}
        self.size = 0

    def hold(self, key: bytes, value: Value) -> Value:
        """The value kept under `key`; this one if there is none yet. Every hold wants a release."""
        known, holders = self._held.get(key, (value, 0))
        if not holders:
            self.size += self._size_of(value)
        self._held[key] = (known, holders + 1)
        return known

    def release(self, key: bytes) -> None:
        """One holder less; the last one frees the value."""
        value, holders = self._held[key]
        if holders > 1:
            self._held[key] = (value, holders - 1)
            return
        del self._held[key]
        self.size -= self._size_of(value)
