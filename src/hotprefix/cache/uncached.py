"""The `KvCache` that never reuses anything: the arm to compare with, and `--no-cache`."""

from __future__ import annotations

from hotprefix.cache.base import CacheGauges, ReusePlan, Room
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import Logits
from hotprefix.cache.recut import Places, Recut, RecutPlan
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.pool import BlockPool, BlockState


class UncachedCache:
    """Allocates blocks for a sequence and frees them when it ends."""

    def __init__(self, pool: BlockPool, rules: ReuseRules) -> None:
        self.pool = pool
        self.rules = rules
        self.evictions = EvictionLog()

    @property
    def block_size(self) -> int:
        return self.rules.block_size

    @property
    def is_shared(self) -> bool:
        return False

    @property
    def usable_blocks(self) -> int:
        return self.pool.size

    def chunk_end(self, start: int, wanted: int, total: int) -> int:
        return self.rules.chunk_end(start, wanted, total)

    def redo_from(self, computed: int) -> int:
        return self.rules.redo_from(computed)

    def plan(self, history: TokenHistory, room: Room | None = None) -> ReusePlan:
        tokens = len(history) if room is None else room.tokens
        return ReusePlan(reused=0, fresh=-(-tokens // self.block_size))

    def spare(self, plan: ReusePlan) -> int:
        return self.pool.free - plan.fresh

    def open(self, history: TokenHistory, plan: ReusePlan) -> Holding | None:
        blocks = self.pool.allocate(plan.fresh)
        return None if blocks is None else Holding(history, blocks, None, 0)

    def grow(self, holding: Holding, tokens: int) -> bool:
        missing = -(-tokens // self.block_size) - len(holding.table)
        blocks = self.pool.allocate(max(0, missing))
        if blocks is None:
            return False
        holding.table.extend(blocks)
        holding.private.update(blocks)
        return True

    def recut(self, holding: Holding, kept: Places) -> Recut | None:
        plan = RecutPlan(holding, kept)
        blocks = self.pool.allocate(max(0, plan.missing))
        return None if blocks is None else plan.carry_out(blocks)

    def commit(self, holding: Holding) -> None:
        """Nothing is offered to others."""

    def keep_logits(self, holding: Holding, logits: Logits) -> None:
        """Nothing is kept."""

    def share_tail(self, holding: Holding) -> None:
        """Nothing is shared."""

    def close(self, holding: Holding) -> None:
        self.pool.release(holding.private)
        holding.private.clear()

    def gauges(self) -> CacheGauges:
        return CacheGauges(
            total=self.pool.size,
            free=self.pool.free,
            private=self.pool.count(BlockState.PRIVATE),
            cached=0,
            held=0,
            logits_bytes=0,
            evicted=0,
        )
