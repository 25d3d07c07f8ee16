"""Identical cold prefixes are computed once: the first request leads, the others wait for its blocks."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from hotprefix.base.ids import BlockKey


class SingleFlight:
    """Which blocks are being computed now, and by whom.

    An owner claims the blocks that its prefill will fill. A later prompt whose first unknown
    block is claimed waits; every commit and every end of an owner lifts claims, so nobody
    waits for longer than its leader computes.
    """

    def __init__(self) -> None:
        self._owner_of: dict[BlockKey, Hashable] = {}
        self._claims: dict[Hashable, list[BlockKey]] = {}
        self._followed: set[Hashable] = set()

    def __len__(self) -> int:
        """Blocks claimed."""
        return len(self._owner_of)

    def leader(self, key: BlockKey) -> Hashable | None:
        """Who computes the block `key` right now."""
        return self._owner_of.get(key)

    def follow(self, owner: Hashable) -> None:
        """Note that somebody waits for `owner`."""
        self._followed.add(owner)

    def is_followed(self, owner: Hashable) -> bool:
        """Whether anybody waited for `owner`."""
        return owner in self._followed

    def claim(self, owner: Hashable, keys: Sequence[BlockKey]) -> None:
        """`owner` will compute the blocks `keys`; those claimed already stay with their owners."""
        mine = [key for key in keys if self._owner_of.setdefault(key, owner) is owner]
        self._claims.setdefault(owner, []).extend(mine)

    def done(self, owner: Hashable, key: BlockKey) -> None:
        """The block `key` of `owner` can be found now."""
        if self._owner_of.get(key) is owner:
            del self._owner_of[key]

    def release(self, owner: Hashable) -> None:
        """`owner` computes no more, for whatever reason."""
        for key in self._claims.pop(owner, ()):
            if self._owner_of.get(key) is owner:
                del self._owner_of[key]
        self._followed.discard(owner)
