"""One block in the prefix tree."""

from __future__ import annotations

from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.kv.accounts import Account


class Node:
    """A sealed block: its key, its tokens and its place in the tree.

    A node whose `tokens` are fewer than a block's is a *tail*: it has no children and is
    found by its tokens, to be copied. The root of a scope has no block (`block` is -1).
    `holders` counts the leases on the node; whoever holds a node holds its ancestors too,
    so `holders == 0` is true of a whole subtree at once. `top` is the root above it; a root
    knows the `account` of the tenant that its blocks are counted for. `index` is the number of
    blocks before this one in every history that it is part of. `mark` is a number that the eviction
    policy keeps with the node.
    """

    __slots__ = (
        "account",
        "block",
        "children",
        "hits",
        "holders",
        "index",
        "key",
        "mark",
        "parent",
        "tokens",
        "top",
        "touched",
    )

    def __init__(self, key: BlockKey, parent: Node | None, tokens: bytes, block: BlockId) -> None:
        self.key = key
        self.parent = parent
        self.tokens = tokens
        self.block = block
        self.children: dict[BlockKey, Node] = {}
        self.holders = 0
        self.touched = 0
        self.hits = 0
        self.mark = 0
        self.index = 0
        self.top: Node = self if parent is None else parent.top
        self.account: Account | None = None

    @property
    def is_root(self) -> bool:
        return self.parent is None

    @property
    def is_candidate(self) -> bool:
        """Whether it may be evicted: a leaf that nobody holds."""
        return not self.holders and not self.children and self.parent is not None

    def path(self) -> list[Node]:
        """From the first block to this one, the root left out."""
        nodes: list[Node] = []
        node: Node = self
        while node.parent is not None:
            nodes.append(node)
            node = node.parent
        nodes.reverse()
        return nodes

    def __repr__(self) -> str:
        return f"Node({self.key.hex()[:8]}, block={self.block}, holders={self.holders})"
