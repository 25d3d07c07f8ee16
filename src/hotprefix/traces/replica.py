"""One server of a replay: the real eviction policy over a tree of blocks without bytes.

It does what `PrefixCache` does with whole blocks, one request after the other, and leaves out what a
replay has no use for: tokens, block numbers, leases of several requests at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy import POLICIES
from hotprefix.traces.key_tier import KeyTier

_NO_BLOCK = BlockId(-1)


@dataclass(slots=True)
class Served:
    """What a request found: blocks in the arena, then blocks in the tier behind it."""

    hits: int
    restored: int
    lost_to_age: bool
    """Whether the first block that was not found had been dropped for its age."""


class Replica:
    """A cache of `capacity` blocks. With `lifetime`, blocks unused for so many seconds are dropped."""

    def __init__(
        self, policy: str, capacity: int, lifetime: float | None = None, tier: KeyTier | None = None
    ) -> None:
        self.capacity = capacity
        self.policy = POLICIES[policy](capacity)
        self.lifetime = lifetime
        self.tier = tier
        self.size = 0
        self.evicted = 0
        self.aged = 0
        self.busy_until = 0.0
        self._roots: dict[str, Node] = {}
        self._tick = 0
        # With a lifetime: every block with the time of its last use, the oldest first.
        self._used: OrderedDict[Node, float] = OrderedDict()
        self._dropped: OrderedDict[BlockKey, None] = OrderedDict()

    def depth(self, scope: str, keys: Sequence[BlockKey]) -> int:
        """Leading blocks that are in the arena. Changes nothing."""
        node, depth = self._roots.get(scope), 0
        while node is not None and depth < len(keys):
            node = node.children.get(keys[depth])
            depth += node is not None
        return depth

    def serve(self, scope: str, keys: Sequence[BlockKey], now: float) -> Served:
        """Find the blocks of a prompt, keep all of them, and evict what has to go for that.

        Of a prompt that is longer than the cache only the beginning is kept.
        """
        if self.lifetime is not None:
            self._expire(now - self.lifetime)
        if len(keys) > self.capacity:
            keys = keys[: self.capacity]
        root = self._roots.get(scope)
        if root is None:
            root = self._roots[scope] = Node(BlockKey(scope.encode()), None, b"", _NO_BLOCK)
        path = self._walk(root, keys)
        hits = len(path)
        restored = self.tier.find(keys, hits) if self.tier is not None else 0
        lost = bool(self._dropped) and hits < len(keys) and keys[hits] in self._dropped
        last = path[-1] if path else root
        last.holders = 1
        if path and not last.children:
            self.policy.discard(last)
        self._make_room(len(keys) - hits)
        self._touch(path)
        leaf = self._append(last, keys[hits:], path)
        last.holders = 0
        if leaf is not root and not leaf.children:
            self.policy.add(leaf)
        if not root.children:
            del self._roots[scope]
        if self.lifetime is not None:
            self._note_use(path, now)
        return Served(hits, restored, lost)

    @staticmethod
    def _walk(root: Node, keys: Sequence[BlockKey]) -> list[Node]:
        path: list[Node] = []
        node = root
        for key in keys:
            child = node.children.get(key)
            if child is None:
                break
            path.append(child)
            node = child
        return path

    def _touch(self, path: list[Node]) -> None:
        self._tick += 1
        tick, touched = self._tick, self.policy.touched
        for node in path:
            node.touched = tick
            node.hits += 1
            touched(node)

    def _append(self, above: Node, keys: Sequence[BlockKey], path: list[Node]) -> Node:
        """Add blocks in a row behind `above`, to the tree and to `path`; returns the last."""
        inserted, tick = self.policy.inserted, self._tick
        for key in keys:
            node = Node(key, above, b"", _NO_BLOCK)
            tick += 1
            node.touched = tick
            above.children[key] = node
            inserted(node)
            path.append(node)
            above = node
        self._tick = tick
        self.size += len(keys)
        return above

    def _make_room(self, wanted: int) -> None:
        missing = self.size + wanted - self.capacity
        if missing <= 0:
            return
        policy, tier, has_lifetime = self.policy, self.tier, self.lifetime is not None
        pop, removed, add = policy.pop, policy.removed, policy.add
        for _ in range(missing):
            node = pop()
            if tier is not None:
                tier.keep(node.key)
            if has_lifetime:
                self._remove(node)
                continue
            # The same, for the many replays without a lifetime: this is where their time goes.
            parent = node.parent
            assert parent is not None
            del parent.children[node.key]
            node.parent = None
            removed(node)
            if not parent.children and not parent.holders:
                if parent.parent is not None:
                    add(parent)
                else:
                    self._roots.pop(parent.key.decode(), None)
        if not has_lifetime:
            self.size -= missing
        self.evicted += missing

    def _remove(self, node: Node) -> None:
        parent = node.parent
        assert parent is not None
        del parent.children[node.key]
        node.parent = None
        self.size -= 1
        self.policy.removed(node)
        if self.lifetime is not None:
            self._used.pop(node, None)
        # A held parent becomes a candidate when it is let go.
        if not parent.children and not parent.holders:
            if parent.parent is not None:
                self.policy.add(parent)
            else:
                self._roots.pop(parent.key.decode(), None)

    def _note_use(self, path: list[Node], now: float) -> None:
        for node in reversed(path):
            self._used[node] = now
            self._used.move_to_end(node)
            self._dropped.pop(node.key, None)

    def _expire(self, before: float) -> None:
        """Drop what was not used since `before`: leaves all, since no block is younger than its parent."""
        while self._used:
            node, used = next(iter(self._used.items()))
            if used >= before:
                return
            self.policy.discard(node)
            self._remove(node)
            self.aged += 1
            self._dropped[node.key] = None
            if len(self._dropped) > self.capacity:
                self._dropped.popitem(last=False)
