"""What attention did with each cached token so far."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hotprefix.cache.recut import Places

_LEAST = np.float32(1e-6)
"""Shares of attention below it are all the same: nothing."""


class Tally:
    """The attention that the tokens of one sequence's cache got from later ones.

    A token is worth the mean share of attention over the queries that could see it: plain sums would
    favour old tokens. Source: ZipCache (arXiv 2405.14256). Importance is the logarithm of that share, so that
    a mean over layers is not that of one loud layer.
    """

    __slots__ = ("_queries", "_sums")

    def __init__(self) -> None:
        self._sums: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._queries: NDArray[np.float32] = np.zeros(0, dtype=np.float32)

    def __len__(self) -> int:
        """Tokens seen."""
        return len(self._queries)

    def note(self, shares: NDArray[np.float32], queries: int) -> None:
        """The last `queries` tokens of a pass looked back: `shares` [layers, tokens] is the attention, summed
        over them and over heads, that each token in the cache got."""
        layers, tokens = shares.shape
        new = tokens - len(self)
        old = self._sums if self._sums.shape[1] else np.zeros((layers, 0), dtype=np.float32)
        self._sums = np.concatenate((old, np.zeros((layers, new), dtype=np.float32)), axis=1)
        self._sums += shares
        self._queries = np.concatenate((self._queries, np.zeros(new, dtype=np.float32)))
        # A query can't see the tokens behind it.
        seen = np.minimum(np.arange(tokens, 0, -1, dtype=np.float32), np.float32(queries))
        self._queries += seen

    def importance(self, places: Places) -> NDArray[np.float32]:
        """[layers, places]."""
        shares = self._sums[:, places] / np.maximum(self._queries[places], 1)
        return np.log(np.maximum(shares, _LEAST))

    def keep(self, kept: Places) -> None:
        """Only these tokens are still in the cache."""
        self._sums = self._sums[:, kept]
        self._queries = self._queries[kept]
