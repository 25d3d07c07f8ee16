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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from hotprefix.base.errors import LogicError
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.keys.chain import TOKEN_BYTES, common_tokens
from hotprefix.kv.accounts import Account, Accounts
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

    def __init__(self, block_size: int, policy: EvictionPolicy, accounts: Accounts | None = None) -> None:
        self.block_size = block_size
        self.policy = policy
        self.accounts = accounts if accounts is not None else Accounts()
        self._roots: dict[BlockKey, Node] = {}
        self._size = 0
        self._held = 0
        self._tick = 0

    def __len__(self) -> int:
        """Blocks in the tree."""
        return self._size

    @property
    def evictable(self) -> int:
        """Blocks that nobody holds: they could be evicted, one after the other, if no floor forbids it."""
        return self._size - self._held

    def evictable_by(self, asker: BlockKey | None) -> int:
        """Blocks that a request of the tenant with this root could evict right now."""
        return self.evictable - self.accounts.protected_from(asker)

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

    def above(self, parent: Node | None, root: BlockKey) -> Node | None:
        """The node that a block behind `parent` hangs from in the tree of `root`.

        That is the root itself at the start, and where a history leaves one tree for another.
        """
        return parent if parent is not None and parent.top.key == root else self._roots.get(root)

    def child(self, parent: Node | None, root: BlockKey, key: BlockKey) -> Node | None:
        """The block with `key` behind `parent` (None: at the start) in the tree of `root`."""
        node = self.above(parent, root)
        return None if node is None else node.children.get(key)

    def insert(
        self,
        root: BlockKey,
        parent: Node | None,
        key: BlockKey,
        tokens: bytes,
        block: BlockId,
        owner: BlockKey | None = None,
    ) -> Node:
        """Add a sealed block behind `parent` (None: at the start). The key must be new there.

        It is counted for the tenant whose root is `owner` (None: `root` itself).

        Tails of the parent that are a prefix of the new block and held by nobody say nothing
        new any more; the caller finds them with `subsumed` and removes them.
        """
        above = self.above(parent, root) or self._new_root(root, owner)
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
        self.accounts.note(self.account_of(node), 1, 0)
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
                self.accounts.note(self.account_of(node), 0, 1)
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
                self.accounts.note(self.account_of(node), 0, -1)
                if node.is_candidate:
                    self.policy.add(node)

    def evict(self, count: int, asker: BlockKey | None = None) -> list[BlockId] | None:
        """Remove exactly `count` leaves, worst first, or return None with nothing changed.

        The room is for the tenant with root `asker`: floors of others are left alone.
        """
        victims = self.evict_nodes(count, asker)
        return None if victims is None else [node.block for node in victims]

    def evict_nodes(self, count: int, asker: BlockKey | None = None) -> list[Node] | None:
        """As `evict`; tells more of the victims than their blocks."""
        if count > self.evictable_by(asker):
            return None
        victims = []
        for _ in range(count):
            node = self.policy.pop(asker)
            self._remove(node)
            victims.append(node)
        return victims

    def nodes_of(self, owner: BlockKey) -> Iterator[Node]:
        """Every block that is counted for a tenant."""
        account = self.accounts.find(owner)
        stack = [root for root in self._roots.values() if root.account is account is not None]
        while stack:
            for child in stack.pop().children.values():
                yield child
                stack.append(child)

    def account_of(self, node: Node) -> Account:
        """The account that a node is counted in."""
        account = node.top.account
        if account is None:
            raise LogicError(f"{node!r} belongs to nobody")
        return account

    def _new_root(self, key: BlockKey, owner: BlockKey | None) -> Node:
        root = Node(key, None, b"", BlockId(-1))
        root.account = self.accounts.open(key if owner is None else owner)
        self._roots[key] = root
        return root

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
        account = self.account_of(node)
        self.accounts.note(account, -1, 0)
        if not parent.children:
            if parent.is_root:
                del self._roots[parent.key]
                self.accounts.forget(account)
            elif parent.is_candidate:
                self.policy.add(parent)
        return node.block
