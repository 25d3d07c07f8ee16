"""What one running sequence has in the arena."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockId
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.lease import Lease


class Holding:
    """The block table of a sequence and how far it is filled, sealed and leased.

    Regions of the table, in this order:

    | blocks                 | owner                                         | may be written |
    | ---------------------- | --------------------------------------------- | -------------- |
    | [0, sealed)            | the tree (leased), or a private duplicate     | no             |
    | [sealed, len(table))   | this sequence                                 | yes            |

    `computed` tokens of the history have been computed; `prefilled` of them by prefill passes; while the
    text is short, `keepable` of them may be kept (see `Regulars`). All of them but `dropped` have their KV
    in the table. The table only grows; when room is short, a duplicate gives way to the tree's block; and
    strategies may have it cut anew (last when `cut_at` tokens were computed), from when on nothing more of
    it is offered for reuse: what was computed behind a gap is no prefix of anything.
    """

    __slots__ = (
        "_origins",
        "computed",
        "cut_at",
        "dropped",
        "history",
        "keepable",
        "lease",
        "prefilled",
        "private",
        "sealed",
        "table",
    )

    def __init__(self, history: TokenHistory, table: list[BlockId], lease: Lease | None, reused: int) -> None:
        self.history = history
        self.table = table
        self.lease = lease
        self.sealed = len(lease.nodes) if lease is not None else 0
        self.private = set(table[self.sealed :])
        self.computed = reused
        self.prefilled = reused
        self.keepable = len(history)
        self.dropped = 0
        self.cut_at = -1
        self._origins: NDArray[np.int64] = np.empty(0, dtype=np.int64)

    @property
    def capacity(self) -> int:
        """Tokens that the table has room for."""
        return len(self.table) * self.history.block_size

    @property
    def cached(self) -> int:
        """Tokens whose KV is in the table."""
        return self.computed - self.dropped

    @property
    def origins(self) -> NDArray[np.int64]:
        """Where the tokens of the table lie in the history, [cached]."""
        known = self._origins[: self.cached]
        return np.concatenate((known, np.arange(len(known) + self.dropped, self.computed, dtype=np.int64)))

    def recut(self, table: list[BlockId], private: AbstractSet[BlockId], kept: NDArray[np.int64]) -> None:
        """Only the tokens `kept` of the table remain, in `table`; `private` are its own blocks."""
        self._origins = self.origins[kept]
        self.dropped = self.computed - len(kept)
        self.cut_at = self.computed
        self.table = table
        self.private = set(private)
        if self.lease is not None:
            self.sealed = min(self.sealed, len(self.lease.nodes))
