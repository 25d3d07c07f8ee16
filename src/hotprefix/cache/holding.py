"""What one running sequence has in the arena."""

from __future__ import annotations

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

    `computed` tokens have their KV in the table; `prefilled` of them were written by prefill
    passes. The table only grows; when room is short, a duplicate gives way to the tree's block.
    """

    __slots__ = ("computed", "history", "lease", "prefilled", "private", "sealed", "table")

    def __init__(self, history: TokenHistory, table: list[BlockId], lease: Lease | None, reused: int) -> None:
        self.history = history
        self.table = table
        self.lease = lease
        self.sealed = len(lease.nodes) if lease is not None else 0
        self.private = set(table[self.sealed :])
        self.computed = reused
        self.prefilled = reused

    @property
    def capacity(self) -> int:
        """Tokens that the table has room for."""
        return len(self.table) * self.history.block_size
