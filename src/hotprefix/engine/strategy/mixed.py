"""`mixed`: what is judged least worth caching goes, wherever it stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hotprefix.cache.recut import Places
from hotprefix.engine.strategy.base import CachedTokens
from hotprefix.engine.strategy.keepers import Keepers, evicted_tokens
from hotprefix.engine.strategy.router import Router


@dataclass(frozen=True, slots=True)
class MixedCutter:
    """`budget` tokens. Sinks, pins, the `recent` last ones and the very last stay; a tenth of all others
    goes at a time, those that the `router` chooses least."""

    budget: int
    keepers: Keepers
    recent: int
    router: Router
    block_size: int

    def keep(self, cached: CachedTokens) -> Places:
        origins = cached.origins
        places = np.arange(len(origins), dtype=np.int64)
        is_kept = self.keepers.among(origins)
        # The last one may be computed again behind the cut, which puts it at the end of the cache.
        is_kept[len(origins) - max(1, self.recent) :] = True
        judged = places[~is_kept]
        staying = max(0, len(judged) - evicted_tokens(len(judged), self.block_size))
        is_kept[judged[self.router.choose(cached.importance(judged), staying)]] = True
        return places[is_kept]
