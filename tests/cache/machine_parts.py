"""A byte-true arena and a naive twin for the cache's state machine.

What a slot of a block holds is a function of the whole history up to its token. Reading a
history back through a block table so shows any wrong share, copy, eviction or overwrite.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np

from hotprefix.base.ids import BlockId
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import Logits
from hotprefix.keys.chain import TOKEN_BYTES, TokenHistory
from hotprefix.kv.tree import BlockTree


def truth(history: TokenHistory, position: int) -> bytes:
    """What the slot of `position` must hold."""
    return sha256(history.root + history.encoded(0, position + 1)).digest()


def true_logits(history: TokenHistory) -> Logits:
    """Logits that only this history has."""
    digest = sha256(b"logits" + history.root + history.encoded(0, len(history))).digest()
    return np.frombuffer(digest, dtype=np.uint8).astype(np.float32)


class TrueArena:
    """Slots of bytes, and how many tokens each write pass put into a block since it was begun."""

    def __init__(self, blocks: int, block_size: int) -> None:
        self.slots: list[list[bytes]] = [[b"" for _ in range(block_size)] for _ in range(blocks)]
        self.passes: list[list[int]] = [[] for _ in range(blocks)]
        self.block_size = block_size

    def copy(self, source: BlockId, target: BlockId) -> None:
        self.slots[target] = list(self.slots[source])
        self.passes[target] = list(self.passes[source])

    def write(self, holding: Holding, start: int, stop: int) -> None:
        """Compute tokens [start, stop) of a holding."""
        for position in range(start, stop):
            block = holding.table[position // self.block_size]
            self.slots[block][position % self.block_size] = truth(holding.history, position)
        size = self.block_size
        for index in range(start // size, -(-stop // size)):
            first, last = max(start, index * size), min(stop, (index + 1) * size)
            passes = self.passes[holding.table[index]]
            if first == index * size:
                passes.clear()
            passes.append(last - first)

    def verify_written_at_once(self, holding: Holding) -> None:
        """Every block of the prompt was filled by a single pass, as in an uncached run.

        A quantised block's bytes depend on this.
        """
        size = self.block_size
        for index in range(-(-holding.computed // size)):
            expected = min(size, holding.computed - index * size)
            assert self.passes[holding.table[index]] == [expected], index

    def verify(self, holding: Holding) -> None:
        """Every computed position reads as it must."""
        for position in range(holding.computed):
            block = holding.table[position // self.block_size]
            assert self.slots[block][position % self.block_size] == truth(holding.history, position)


def naive_match(tree: BlockTree, history: TokenHistory) -> int:
    """The longest prefix of `history` that any path of the tree begins with, by brute force."""
    wanted = history.encoded(0, len(history))
    best = 0
    for root in tree.roots:
        if root.key != history.root:
            continue
        stack = [(child, b"") for child in root.children.values()]
        while stack:
            node, before = stack.pop()
            path = before + node.tokens
            shared = next(
                (at for at in range(0, min(len(path), len(wanted)), TOKEN_BYTES)
                 if path[at : at + TOKEN_BYTES] != wanted[at : at + TOKEN_BYTES]),
                min(len(path), len(wanted)),
            )  # fmt: skip
            best = max(best, shared // TOKEN_BYTES)
            stack.extend((child, path) for child in node.children.values())
    return best
