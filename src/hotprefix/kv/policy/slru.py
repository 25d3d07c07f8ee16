"""Segmented LRU (Karedla, Love and Wherry, 1994): what was used twice outlives what was used once."""

from __future__ import annotations

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import CandidateHeap
from hotprefix.kv.policy.lru import by_recency

PROTECTED_SHARE = 0.8
"""Part of the capacity that reused blocks may claim, as in the original paper's best range."""


class SlruPolicy:
    """New blocks are on probation; a reuse protects them, up to a share of the capacity."""

    name = "slru"

    def __init__(self, capacity: int) -> None:
        self._limit = max(1, int(capacity * PROTECTED_SHARE))
        self._probation = CandidateHeap(by_recency)
        self._protected = CandidateHeap(by_recency)
        # All protected nodes, candidate or not, in the order of their last use.
        self._order: dict[Node, None] = {}

    def __len__(self) -> int:
        return len(self._probation) + len(self._protected)

    def inserted(self, node: Node) -> None:
        """New nodes are on probation."""

    def touched(self, node: Node) -> None:
        self._order.pop(node, None)
        self._order[node] = None
        if node in self._probation or node in self._protected:
            self._probation.discard(node)
            self._protected.add(node)
        while len(self._order) > self._limit:
            oldest = next(iter(self._order))
            del self._order[oldest]
            if oldest in self._protected:
                self._protected.discard(oldest)
                self._probation.add(oldest)

    def removed(self, node: Node) -> None:
        self._order.pop(node, None)

    def add(self, node: Node) -> None:
        (self._protected if node in self._order else self._probation).add(node)

    def discard(self, node: Node) -> None:
        self._probation.discard(node)
        self._protected.discard(node)

    def peek(self) -> Node | None:
        node = self._probation.peek()
        return node if node is not None else self._protected.peek()

    def pop(self, asker: BlockKey | None = None) -> Node:
        for segment in (self._probation, self._protected):
            if len(segment):
                return segment.pop()
        raise LogicError("there is no candidate for eviction")
