"""What an eviction policy does: it ranks. The tree decides who may go at all."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node


class EvictionPolicy(Protocol):
    """Ranks the candidates: leaves that nobody holds.

    `add` and `discard` keep the set of candidates; `inserted`, `touched` and `removed` tell of
    every node's life, candidate or not. `pop` takes the worst candidate out of the set.
    """

    name: str

    def inserted(self, node: Node) -> None: ...

    def touched(self, node: Node) -> None: ...

    def removed(self, node: Node) -> None: ...

    def add(self, node: Node) -> None: ...

    def discard(self, node: Node) -> None: ...

    def peek(self) -> Node | None:
        """A candidate that would go soon, for comparing the age of several policies' worst."""
        ...

    def pop(self, asker: BlockKey | None = None) -> Node:
        """Remove and return the worst candidate. Raises `LogicError` if there is none.

        `asker` is the root of the tenant that needs the room; only quotas care.
        """
        ...

    def __len__(self) -> int:
        """Number of candidates."""
        ...


class CandidateHeap:
    """A set of nodes that gives up the one of lowest rank; `discard` is lazy.

    A node keeps the rank it was added with until it is added again or `rerank` is called.
    Stale entries are skipped on `pop` and swept out when they outnumber the live ones, so
    memory stays within a constant of the number of candidates.
    """

    def __init__(self, rank: Callable[[Node], tuple[float, ...]]) -> None:
        self._rank = rank
        self._heap: list[tuple[tuple[float, ...], int, Node]] = []
        self.members: dict[Node, int] = {}
        """The nodes that are in; for looking only."""
        self._serial = 0

    def __len__(self) -> int:
        return len(self.members)

    def __contains__(self, node: Node) -> bool:
        return node in self.members

    def add(self, node: Node) -> None:
        """Add a node, or rank it again if it is in."""
        self._serial += 1
        self.members[node] = self._serial
        heapq.heappush(self._heap, (self._rank(node), self._serial, node))
        if len(self._heap) > 2 * len(self.members) + 64:
            self._heap = [entry for entry in self._heap if self.members.get(entry[2]) == entry[1]]
            heapq.heapify(self._heap)

    def discard(self, node: Node) -> None:
        """Take a node out, if it is in."""
        self.members.pop(node, None)

    def rerank(self) -> None:
        """Rank all nodes anew. O(n)."""
        self._heap = [(self._rank(node), serial, node) for node, serial in self.members.items()]
        heapq.heapify(self._heap)

    def peek(self) -> Node | None:
        """The node of lowest rank."""
        heap = self._heap
        while heap and self.members.get(heap[0][2]) != heap[0][1]:
            heapq.heappop(heap)
        return heap[0][2] if heap else None

    def pop(self) -> Node:
        """Remove and return the node of lowest rank."""
        heap, live = self._heap, self.members
        while heap:
            _, serial, node = heapq.heappop(heap)
            if live.get(node) == serial:
                del live[node]
                return node
        raise LogicError("there is no candidate for eviction")
