"""A block table cut anew: some tokens leave, the others move up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockId
from hotprefix.cache.holding import Holding

Places: TypeAlias = NDArray[np.int64]
"""Places of tokens in a sequence's cache, rising: 0 is the first one."""


@dataclass(frozen=True, slots=True)
class Recut:
    """Token `kept[i]` of the table `before` becomes token i of the table `after`.

    The first `front` blocks are the same in both and nothing in them moves; all blocks of `after`
    behind them belong to the sequence alone. The bytes are still where they were.
    """

    before: Sequence[BlockId]
    after: Sequence[BlockId]
    kept: Places
    front: int


class RecutPlan:
    """Which blocks stay where they are when only the tokens `kept` of a holding remain.

    A block all of whose tokens stay together keeps its block if that is the sequence's own, however
    far up the table it moves. `front` leading blocks don't move at all; `missing` more private
    blocks are needed to carry the plan out.
    """

    def __init__(self, holding: Holding, kept: Places) -> None:
        size = holding.history.block_size
        self._holding = holding
        self._kept = kept
        wholes = _whole_blocks(kept, size)
        moved = [at for at, source in enumerate(wholes) if source != at]
        self.front = moved[0] if moved else len(wholes)
        own = holding.private
        self._stays = [
            source if source is not None and holding.table[source] in own else None
            for source in wholes[self.front :]
        ]
        taken = {source for source in self._stays if source is not None}
        self._spare = [
            block
            for at, block in enumerate(holding.table)
            if at >= self.front and at not in taken and block in own
        ]
        self.missing = self._stays.count(None) - len(self._spare)

    def carry_out(self, blocks: Sequence[BlockId]) -> Recut:
        """Cut the table, with `missing` more private blocks. What the sequence had beyond stays its own,
        at the end of the table: the next tokens need it."""
        holding = self._holding
        before = tuple(holding.table)
        spare = [*self._spare, *blocks]
        places = iter(spare)
        moved = [before[source] if source is not None else next(places) for source in self._stays]
        left = list(places)
        table = [*before[: self.front], *moved, *left]
        kept_private = holding.private & set(before[: self.front])
        holding.recut(table, kept_private | set(moved) | set(left), self._kept)
        return Recut(before, table, self._kept, self.front)


def _whole_blocks(kept: Places, size: int) -> list[int | None]:
    """For each new block the old one that has the very same tokens in the same slots, if there is one."""
    blocks: list[int | None] = []
    for start in range(0, len(kept), size):
        run = kept[start : start + size]
        first = int(run[0])
        is_whole = first % size == 0 and int(run[-1]) - first == len(run) - 1
        blocks.append(first // size if is_whole else None)
    return blocks
