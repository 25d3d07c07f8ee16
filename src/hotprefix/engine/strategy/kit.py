"""What strategies need of a loaded model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hotprefix.base.errors import InvalidRequest, UnsupportedModel
from hotprefix.base.ids import BlockId
from hotprefix.cache.base import KvCache
from hotprefix.engine.strategy.base import Bounds
from hotprefix.engine.strategy.catalogue import Strategies
from hotprefix.engine.strategy.compactor import Compactor
from hotprefix.engine.strategy.mover import ArenaMover, TokenMover, why_not_movable
from hotprefix.engine.strategy.scorer import Scorer, make_scorer
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.rotary import Rotary

_NO_ROTATION = (
    "it moves cached keys, and this model's position embedding is no fixed rotation, which alone can be moved"
)


@dataclass(frozen=True, slots=True)
class StrategyKit:
    """The strategies, and who cuts caches; nobody where keys can't be moved."""

    strategies: Strategies
    compactor: Compactor | None


def strategy_kit(
    settings: StrategySettings,
    context: int,
    arena: BlockArena,
    cache: KvCache,
    rotary: Callable[[], Rotary | None],
) -> StrategyKit:
    """Raises `UnsupportedModel` if the server's own strategy can't be had, `ModelError` for its scorer."""
    reason, compactor = why_not_movable(arena.format), None
    if not reason:
        turning = rotary()
        if turning is None:
            reason = _NO_ROTATION
        else:
            mover, scorer = ArenaMover(arena, turning), make_scorer(settings.judge, turning)
            _require_fit(scorer, mover)
            compactor = Compactor(cache, mover, scorer)
    bounds = Bounds(context, cache.usable_blocks * cache.block_size, cache.block_size)
    try:
        return StrategyKit(Strategies(settings, bounds, reason), compactor)
    except InvalidRequest as error:
        raise UnsupportedModel(f"{error} (--kv-strategy, --kv-window)") from None


def _require_fit(scorer: Scorer, mover: TokenMover) -> None:
    """Have one token judged: a scorer of another model is told of now, not in the middle of an answer."""
    place = np.zeros(1, dtype=np.int64)
    scorer.score(*mover.read([BlockId(0)], place), place)
