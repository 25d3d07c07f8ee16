"""Which short prompts are worth keeping: those that came before."""

from __future__ import annotations

from hotprefix.base.ids import BlockKey
from hotprefix.keys.chain import TokenHistory

MOST_KEYS = 8192
"""Keys of a generation: 2 MiB for both."""


class Regulars:
    """Sees to it that text under `shortest` tokens is kept only if it comes again.

    A short prompt that never returns would fill blocks that others could use, and pay for sealing them. So
    its blocks are only noted at first, by key; those that are met again are kept, one by one from the start.
    Of the keys the last `most` to twice as many are remembered, in two generations. 0 for `shortest` keeps
    everything. `Holding.keepable` carries the verdict; whoever knows better may raise it.
    """

    def __init__(self, shortest: int = 0, most: int = MOST_KEYS) -> None:
        self.shortest = shortest
        self._most = most
        self._young: set[BlockKey] = set()
        self._old: set[BlockKey] = set()

    def __len__(self) -> int:
        """Keys remembered."""
        return len(self._young | self._old)

    def meet(self, history: TokenHistory, shared: int) -> int:
        """A prompt begins to be computed, its first `shared` blocks being in the cache already. Gives the
        tokens from its start that may be kept while the text is short."""
        if len(history) >= self.shortest:
            return len(history)
        keys = history.all_keys()
        known = shared
        while known < len(keys) and (keys[known] in self._young or keys[known] in self._old):
            known += 1
        self._young.update(keys)
        if len(self._young) >= self._most:
            self._old, self._young = self._young, set()
        return min(known * history.block_size, len(history))

    def limit(self, history: TokenHistory, keepable: int, computed: int) -> int:
        """Of `computed` tokens, those that may be kept now."""
        return computed if len(history) >= self.shortest else min(keepable, computed)
