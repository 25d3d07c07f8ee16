"""Pins: prefixes that stay in the arena until they are let go, whatever the policy thinks."""

from __future__ import annotations

from collections import Counter

from hotprefix.cache.prefix import PrefixCache
from hotprefix.keys.chain import TOKEN_BYTES, TokenHistory
from hotprefix.kv.lease import Lease
from hotprefix.kv.node import Node


class PinBoard:
    """Holds prefixes by name, at most `limit` blocks in all: requests must find room beside them.

    Half of what tenants' floors take is taken off it.
    """

    def __init__(self, cache: PrefixCache, limit: int) -> None:
        self.cache = cache
        self._limit = limit
        self._leases: dict[str, Lease] = {}
        self._named: Counter[Node] = Counter()

    def __len__(self) -> int:
        """Pins."""
        return len(self._leases)

    @property
    def blocks(self) -> int:
        """Blocks that are held by at least one pin."""
        return len(self._named)

    def holds(self, node: Node) -> bool:
        """Whether some pin holds this block."""
        return node in self._named

    def pin(self, name: str, history: TokenHistory) -> int:
        """Hold what the cache has of `history`; a pin of that name is replaced.

        Returns the tokens held: all of them, or fewer if the format can't share a partial block.
        0 means that nothing is held: the prefix has gone, or the limit is reached.
        """
        path = self.cache.whole_path(history)
        old = self._leases.get(name)
        room = self._limit - self.cache.tree.accounts.floors // 2
        if not path or self._cost(path) > room:
            return 0
        lease = self.cache.leases.issue(path)
        self._leases[name] = lease
        self._named.update(path)
        if old is not None:
            self._release(old)
        held = sum(len(node.tokens) for node in path) // TOKEN_BYTES
        return min(held, len(history))

    def unpin(self, name: str) -> None:
        """Let go; unknown names are ignored."""
        lease = self._leases.pop(name, None)
        if lease is not None:
            self._release(lease)

    def clear(self) -> None:
        """Let everything go."""
        for name in list(self._leases):
            self.unpin(name)

    def _cost(self, path: list[Node]) -> int:
        return len(self._named) + sum(1 for node in path if node not in self._named)

    def _release(self, lease: Lease) -> None:
        for node in lease.nodes:
            self._named[node] -= 1
            if not self._named[node]:
                del self._named[node]
        lease.release()
