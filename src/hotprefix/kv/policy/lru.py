"""Least recently used."""

from __future__ import annotations

from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import CandidateHeap


def by_recency(node: Node) -> tuple[int, ...]:
    """Rank: the tick of the last use, lowest goes first."""
    return (node.touched,)


class LruPolicy:
    """The leaf that was used longest ago goes first."""

    name = "lru"

    def __init__(self) -> None:
        self._candidates = CandidateHeap(by_recency)

    def __len__(self) -> int:
        return len(self._candidates)

    def inserted(self, node: Node) -> None:
        """Recency is in the node itself."""

    def touched(self, node: Node) -> None:
        if node in self._candidates.members:
            self._candidates.add(node)

    def removed(self, node: Node) -> None:
        """Nothing is kept of evicted nodes."""

    def add(self, node: Node) -> None:
        self._candidates.add(node)

    def discard(self, node: Node) -> None:
        self._candidates.discard(node)

    def peek(self) -> Node | None:
        return self._candidates.peek()

    def pop(self, asker: BlockKey | None = None) -> Node:
        return self._candidates.pop()
