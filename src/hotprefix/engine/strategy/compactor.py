"""Carrying out what a strategy decides: books first, then bytes."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.errors import LogicError
from hotprefix.cache.base import KvCache
from hotprefix.cache.holding import Holding
from hotprefix.cache.recut import Places
from hotprefix.engine.strategy.base import CachedTokens, Cutter
from hotprefix.engine.strategy.mover import TokenMover
from hotprefix.engine.strategy.scorer import Scorer
from hotprefix.engine.strategy.tally import Tally


class Compactor:
    """Cuts the holdings whose caches are full."""

    def __init__(self, cache: KvCache, mover: TokenMover, scorer: Scorer) -> None:
        self._cache = cache
        self._mover = mover
        self._scorer = scorer

    def compact(self, holding: Holding, cutter: Cutter, tally: Tally | None) -> bool:
        """Let go what `cutter` gives up; False, and nothing changed, if the arena is too full for copies
        of the blocks that others read too."""
        cached = CachedTokens(holding.origins, partial(self._importance, holding, tally))
        kept = cutter.keep(cached)
        if not 0 < len(kept) < holding.cached:
            raise LogicError(f"of {holding.cached} cached tokens a strategy keeps {len(kept)}")
        cut = self._cache.recut(holding, kept)
        if cut is None:
            return False
        self._mover.move(cut)
        if tally is not None:
            tally.keep(kept)
        return True

    def _importance(self, holding: Holding, tally: Tally | None, places: Places) -> NDArray[np.float32]:
        if tally is not None and len(tally) == holding.cached:
            return tally.importance(places)
        keys, values = self._mover.read(holding.table, places)
        return self._scorer.score(keys, values, places)
