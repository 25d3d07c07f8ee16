"""The blocks of the arena by number: free, private to a sequence, or sealed in the tree."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId


class BlockState(IntEnum):
    """A block is in exactly one state (invariant I2)."""

    FREE = 0
    PRIVATE = 1
    SEALED = 2


class BlockPool:
    """Hands out block ids in [first, first + size).

    Freed blocks are used again before untouched ones, so that memory which was never needed
    is never touched. All verbs are O(1) a block.
    """

    def __init__(self, size: int, first: int = 0) -> None:
        if size <= 0:
            raise ValueError("a pool needs at least one block")
        self.size = size
        self.first = first
        self._state = bytearray(size)
        self._free = list(range(first + size - 1, first - 1, -1))
        self._counts = [size, 0, 0]

    def count(self, state: BlockState) -> int:
        """How many blocks are in `state`."""
        return self._counts[state]

    @property
    def free(self) -> int:
        """How many blocks are free."""
        return self._counts[BlockState.FREE]

    def state(self, block: BlockId) -> BlockState:
        """The state of one block."""
        return BlockState(self._state[block - self.first])

    def allocate(self, count: int) -> list[BlockId] | None:
        """`count` private blocks, or None (and nothing changed) if fewer are free."""
        if count > len(self._free):
            return None
        split = len(self._free) - count
        taken = self._free[split:]
        del self._free[split:]
        taken.reverse()
        for block in taken:
            self._state[block - self.first] = BlockState.PRIVATE
        self._counts[BlockState.FREE] -= count
        self._counts[BlockState.PRIVATE] += count
        return [BlockId(block) for block in taken]

    def seal(self, block: BlockId) -> None:
        """A private block goes into the tree: its bytes don't change any more."""
        self._move(block, BlockState.PRIVATE, BlockState.SEALED)

    def release(self, blocks: Iterable[BlockId]) -> None:
        """Private blocks become free."""
        for block in blocks:
            self._move(block, BlockState.PRIVATE, BlockState.FREE)
            self._free.append(block)

    def evict(self, block: BlockId) -> None:
        """A sealed block, taken out of the tree, becomes free."""
        self._move(block, BlockState.SEALED, BlockState.FREE)
        self._free.append(block)

    def reclaim(self, block: BlockId) -> None:
        """A sealed block, taken out of the tree, becomes private, its bytes as they are."""
        self._move(block, BlockState.SEALED, BlockState.PRIVATE)

    def free_ids(self) -> list[BlockId]:
        """The free blocks, for checkers."""
        return [BlockId(block) for block in self._free]

    def _move(self, block: BlockId, old: BlockState, new: BlockState) -> None:
        index = block - self.first
        if not 0 <= index < self.size or self._state[index] != old:
            raise LogicError(f"block {block} is not {old.name.lower()}: can't make it {new.name.lower()}")
        self._state[index] = new
        self._counts[old] -= 1
        self._counts[new] += 1
