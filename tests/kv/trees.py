"""Small trees for the tests: a block holds four tokens, a token is a letter."""

from __future__ import annotations

from hotprefix.base.ids import BlockId
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.kv.node import Node
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.policy.base import EvictionPolicy
from hotprefix.kv.tree import BlockTree

BLOCK = 4
ROOT = CacheScope("model", "format").root()
OTHER_ROOT = CacheScope("model", "format", tenant="other").root()


def history(text: str, root: bytes = ROOT) -> TokenHistory:
    """The letters of `text` as tokens."""
    return TokenHistory(root, map(ord, text), BLOCK)  # type: ignore[arg-type]


def encoded(text: str) -> bytes:
    """The letters of `text` as the tree sees them."""
    return history(text).encoded(0, len(text))


def letters(node: Node) -> str:
    """What a node holds, as letters."""
    return node.tokens.decode("utf-32-le")


class Grove:
    """A tree that is told of histories by name; blocks are numbered in the order of insertion."""

    def __init__(self, policy: EvictionPolicy | None = None) -> None:
        self.tree = BlockTree(BLOCK, policy if policy is not None else POLICIES["lru"](100))
        self.blocks = 0

    def add(self, text: str, root: bytes = ROOT) -> Node:
        """Insert the blocks of `text` that are missing; returns the last node of its path."""
        tokens = history(text, root)
        full, rest = divmod(len(text), BLOCK)
        node: Node | None = None
        for index in range(full + bool(rest)):
            end = min(len(text), (index + 1) * BLOCK)
            key = tokens.key_at(end)
            child = self.tree.child(node, tokens.root, key)
            if child is None:
                child = self.tree.insert(tokens.root, node, key, tokens.block_bytes(index), self._block())
            node = child
        assert node is not None
        return node

    def use(self, node: Node) -> None:
        """What a request does to the path of a node: hold it, touch it, drop it."""
        path = node.path()
        self.tree.hold(path)
        self.tree.touch(path)
        self.tree.drop(reversed(path))

    def order(self) -> list[BlockId]:
        """Evict everything that may go, one by one; the blocks in the order they went."""
        gone: list[BlockId] = []
        while (block := self.tree.evict(1)) is not None:
            gone += block
        return gone

    def _block(self) -> BlockId:
        self.blocks += 1
        return BlockId(self.blocks - 1)
