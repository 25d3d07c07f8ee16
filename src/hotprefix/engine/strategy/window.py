"""`window`: a fixed number of tokens; when it is full the oldest tenth goes.

Source: Xiao et al., Efficient Streaming Language Models with Attention Sinks (arXiv 2309.17453): the first
tokens stay, and positions are positions in the cache. Beside them pinned spans stay, and some tokens
for their score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotprefix.cache.recut import Places
from hotprefix.engine.strategy.base import CachedTokens
from hotprefix.engine.strategy.keepers import Keepers, evicted_tokens


@dataclass(frozen=True, slots=True)
class WindowCutter:
    """`budget` tokens, of which at most `keys` older ones stay for their score.

    The cache always is, in the order of the sequence: sinks and pins, key tokens, and a gapless run of the
    latest tokens. What goes is the oldest tenth of that run, except that its best tokens take the
    places of worse key tokens, or new places while there are fewer than `keys`.
    """

    budget: int
    keepers: Keepers
    keys: int
    block_size: int

    def keep(self, cached: CachedTokens) -> Places:
        origins = cached.origins
        places = np.arange(len(origins), dtype=np.int64)
        fixed = self.keepers.among(origins)
        gaps = np.flatnonzero(np.diff(origins) > 1)
        first = int(gaps[-1]) + 1 if len(gaps) else 0
        old, run = places[:first][~fixed[:first]], places[first:][~fixed[first:]]
        leaving = evicted_tokens(len(run), self.block_size)
        more = min(self.block_size, self.keys - len(old), len(run) - leaving)
        judged = np.concatenate((old, run[: leaving + max(0, more)]))
        staying = len(judged) - leaving
        gone = judged
        if staying > 0:
            order = np.argsort(-cached.importance(judged).mean(axis=0), kind="stable")
            gone = judged[order[staying:]]
        is_kept = np.ones(len(origins), dtype=bool)
        is_kept[gone] = False
        return places[is_kept]
