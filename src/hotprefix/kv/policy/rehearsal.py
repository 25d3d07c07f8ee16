"""What a ranking would have found, had it been followed: a tree of keys without blocks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import CandidateHeap
from hotprefix.kv.policy.marks import GONE_ON, after_return, at_eviction

_NO_BLOCK = BlockId(-1)


class Rehearsal:
    """A cache of `capacity` keys that gives up the leaf of lowest `rank`.

    A request's blocks are noted from the first on. What was noted since the last `settle` is kept, as
    a running request keeps its blocks. Of `remembered` evicted keys the uses are known when they return.
    """

    def __init__(self, capacity: int, rank: Callable[[Node], tuple[float, ...]], remembered: int) -> None:
        self._capacity = max(1, capacity)
        self._remembered = remembered
        self._nodes: dict[BlockKey, Node] = {}
        self._root = Node(BlockKey(b""), None, b"", _NO_BLOCK)
        self._candidates = CandidateHeap(rank)
        self._uses: OrderedDict[BlockKey, int] = OrderedDict()
        # What was noted since the last `settle`, here and in the real tree.
        self._noted: list[tuple[Node, Node]] = []
        self.found = 0
        """Keys that were wanted while they were kept."""

    def __len__(self) -> int:
        return len(self._nodes)

    def note(self, real: Node, above: BlockKey | None) -> None:
        """The block `real` was wanted; `above` is the nearest block before it that is noted, too."""
        node = self._nodes.get(real.key)
        if node is None:
            node = self._insert(real.key, above)
        else:
            self.found += 1
            node.hits += 1
            self._candidates.discard(node)
        if node is None:
            return
        node.touched = real.touched
        self._noted.append((node, real))
        if len(self._noted) >= self._capacity:
            self.settle()

    def forget(self, key: BlockKey) -> None:
        """A block has gone for no lack of room. One that others hang from stays, as in a tree."""
        node = self._nodes.get(key)
        if node is not None and not node.children:
            self._candidates.discard(node)
            self._remove(node)

    def settle(self) -> None:
        """The request is over: what it used may go."""
        for node, real in self._noted:
            node.mark |= real.mark & GONE_ON
            if not node.children and node.parent is not None:
                self._candidates.add(node)
        self._noted.clear()

    def rerank(self) -> None:
        """Rank all that may go anew."""
        self._candidates.rerank()

    def _insert(self, key: BlockKey, above: BlockKey | None) -> Node | None:
        """A new block, unless requests hold all the room."""
        if len(self._nodes) >= self._capacity:
            if not len(self._candidates):
                return None
            self._evict()
        parent = self._root if above is None else self._nodes.get(above, self._root)
        self._candidates.discard(parent)
        node = Node(key, parent, b"", _NO_BLOCK)
        uses = self._uses.pop(key, None)
        if uses is not None:
            node.mark = after_return(uses)
        parent.children[key] = self._nodes[key] = node
        return node

    def _evict(self) -> None:
        node = self._candidates.pop()
        self._remove(node)
        self._uses[node.key] = at_eviction(node)
        if len(self._uses) > self._remembered:
            self._uses.popitem(last=False)

    def _remove(self, node: Node) -> None:
        parent = node.parent or self._root
        del self._nodes[node.key], parent.children[node.key]
        node.parent = None
        if not parent.children and parent is not self._root:
            self._candidates.add(parent)
