"""The prefix tree: sealed blocks by chained key, one root for each scope.

| verb     | reads                | changes                        | cost                 |
| -------- | -------------------- | ------------------------------ | -------------------- |
| `match`  | keys, encoded tokens | nothing                        | O(blocks) dict looks |
| `insert` | parent, key, tokens  | adds one node                  | O(1)                 |
| `hold`   | nodes                | their holder counts, the order | O(nodes)             |
| `drop`   | nodes                | their holder counts            | O(nodes)             |
| `evict`  | –                    | removes exactly n nodes, or 0  | O(n log candidates)  |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.keys.chain import TOKEN_BYTES, common_tokens
from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import EvictionPolicy

PARTIAL_FANOUT = 32
"""Children looked at for a partial match, youngest first: bounds the cost at busy nodes."""


@dataclass(frozen=True, slots=True)
class Match:
    """What the tree holds of a token history.

    `nodes` are full blocks from the start. `partial` is a child of the last of them that
    shares `partial_tokens` more leading tokens, to be copied.
    """

    nodes: tuple[Node, ...]
    partial: Node | None = None
    partial_tokens: int = 0


class BlockTree:
    """Sealed blocks, who holds them, and the order in which they may go."""

    def __init__(self, block_size: int, policy: EvictionPolicy) -> None:
        self.block_size = block_size
        self.policy = policy
        self._roots: dict[BlockKey, Node] = {}
        self._size = 0
        self._held = 0
        self._tick = 0

    def __len__(self) -> int:
        """Blocks in the tree."""
        return self._size

    @property
    def evictable(self) -> int:
        """Blocks that could be evicted, one after the other, right now."""
        return self._size - self._held

    @property
    def roots(self) -> Iterable[Node]:
        """The root of every scope that has blocks."""
        return self._roots.values()

    def match(self, root: BlockKey, keys: Sequence[BlockKey], tail: bytes = b"") -> Match:
        """The longest known prefix: full blocks by `keys`, then a partial one.

        `tail` is the encoded tokens behind the last key's block (fewer than a block). If the
        walk ends earlier, the caller asks `partial` for the block where it ended.
        """
        node = self._roots.get(root)
        if node is None:
            return Match(())
        nodes: list[Node] = []
        for key in keys:
            child = node.children.get(key)
            if child is None:
                return Match(tuple(nodes))
            nodes.append(child)
            node = child
        if not tail:
            return Match(tuple(nodes))
        partial, shared = self.partial(node, tail)
        return Match(tuple(nodes), partial, shared)

    def partial(self, node: Node | None, tokens: bytes) -> tuple[Node | None, int]:
        """The child of `node` that shares most leading tokens with `tokens`, and how many."""
        best: Node | None = None
        shared = 0
        if node is None:
            return best, shared
        wanted = len(tokens) // TOKEN_BYTES
        for child in islice(reversed(node.children.values()), PARTIAL_FANOUT):
            count = common_tokens(child.tokens, tokens)
            if count > shared:
                best, shared = child, count
                if shared == wanted:
                    break
        return best, shared

    def root_of(self, root: BlockKey) -> Node | None:
        """The root node of a scope, if it has any block."""
        return self._roots.get(root)

    def child(self, parent: Node | None, root: BlockKey, key: BlockKey) -> Node | None:
        """The child of `parent` (None: of the scope's root) with `key`."""
        node = self._roots.get(root) if parent is None else parent
        return None if node is None else node.children.get(key)

    def insert(
        self, root: BlockKey, parent: Node | None, key: BlockKey, tokens: bytes, block: BlockId
    ) -> Node:
        """Add a sealed block below `parent` (None: at the start). The key must be new there.

        Tails of the parent that are a prefix of the new block and held by nobody say nothing
        new any more; the caller finds them with `subsumed` and removes them.
        """
        above = self._roots.setdefault(root, Node(root, None, b"", BlockId(-1))) if parent is None else parent
        if key in above.children:
            raise LogicError(f"key {key.hex()[:8]} is already in the tree")
        if above.parent is not None and len(above.tokens) != self.block_size * TOKEN_BYTES:
            raise LogicError("a tail can't have children")
        if not above.children and above.is_candidate:
            self.policy.discard(above)
        node = Node(key, above, tokens, block)
        self._tick += 1
        node.touched = self._tick
        above.children[key] = node
        self._size += 1
        self.policy.inserted(node)
        self.policy.add(node)
        return node

    def subsumed(self, node: Node) -> list[Node]:
        """Unheld tails beside `node` whose tokens `node` begins with."""
        parent = node.parent
        if parent is None or len(parent.children) == 1:
            return []
        siblings = islice(reversed(parent.children.values()), PARTIAL_FANOUT)
        return [
            other
            for other in siblings
            if other is not node
            and other.is_candidate
            and len(other.tokens) < len(node.tokens)
            and node.tokens.startswith(other.tokens)
        ]

    def hold(self, nodes: Iterable[Node]) -> None:
        """Keep `nodes` (with all their ancestors among them or held already) from eviction."""
        for node in nodes:
            if not node.holders:
                if node.is_candidate:
                    self.policy.discard(node)
                self._held += 1
            node.holders += 1

    def touch(self, nodes: Sequence[Node]) -> None:
        """Note that `nodes`, a path from the start, were used once more, all at the same time."""
        self._tick += 1
        for node in nodes:
            node.touched = self._tick
            node.hits += 1
            self.policy.touched(node)

    def drop(self, nodes: Iterable[Node]) -> None:
        """Undo one `hold`."""
        for node in nodes:
            if not node.holders:
                raise LogicError(f"{node!r} is held by nobody")
            node.holders -= 1
            if not node.holders:
                self._held -= 1
                if node.is_candidate:
                    self.policy.add(node)

    def evict(self, count: int) -> list[BlockId] | None:
        """Remove exactly `count` leaves, worst first, or return None with nothing changed."""
        if count > self.evictable:
            return None
        return [self._remove(self.policy.pop()) for _ in range(count)]

    def remove(self, node: Node) -> BlockId:
        """Take one candidate out, whatever its rank; returns its block."""
        if not node.is_candidate:
            raise LogicError(f"{node!r} can't be removed")
        self.policy.discard(node)
        return self._remove(node)

    def _remove(self, node: Node) -> BlockId:
        parent = node.parent
        if parent is None or not node.is_candidate:
            raise LogicError(f"the policy gave up {node!r}, which is no candidate")
        del parent.children[node.key]
        node.parent = None
        self._size -= 1
        self.policy.removed(node)
        if not parent.children:
            if parent.is_root:
                del self._roots[parent.key]
            elif parent.is_candidate:
                self.policy.add(parent)
        return node.block
