"""The arm without reuse: blocks in, blocks out, nothing found."""

from __future__ import annotations

import numpy as np

from hotprefix.cache.base import CacheGauges, KvCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.cache.uncached import UncachedCache
from hotprefix.kv.pool import BlockPool
from tests.kv.trees import BLOCK, history


def build(blocks: int) -> UncachedCache:
    return UncachedCache(BlockPool(blocks), ReuseRules(BLOCK))


def test_it_allocates_what_the_prompt_needs_and_frees_it() -> None:
    cache: KvCache = build(5)
    prompt = history("aaaabbbbc")
    plan = cache.plan(prompt)
    assert (plan.reused, plan.fresh, plan.logits) == (0, 3, None)
    assert cache.spare(plan) == 2
    holding = cache.open(prompt, plan)
    assert holding is not None
    assert (holding.computed, holding.capacity, len(set(holding.table))) == (0, 12, 3)
    assert cache.gauges() == CacheGauges(5, 2, 3, 0, 0, 0, 0)
    cache.close(holding)
    assert cache.gauges() == CacheGauges(5, 5, 0, 0, 0, 0, 0)


def test_nothing_is_found_again() -> None:
    cache = build(5)
    prompt = history("aaaabbbbc")
    holding = cache.open(prompt, cache.plan(prompt))
    assert holding is not None
    holding.computed = holding.prefilled = 9
    cache.commit(holding)
    cache.keep_logits(holding, np.zeros(4, dtype=np.float32))
    cache.share_tail(holding)
    assert cache.plan(history("aaaabbbbc")).reused == 0
    cache.close(holding)
    assert cache.plan(history("aaaabbbbc")).reused == 0


def test_a_full_arena_says_no_and_changes_nothing() -> None:
    cache = build(3)
    first = cache.open(history("aaaabbbb"), cache.plan(history("aaaabbbb")))
    assert first is not None
    plan = cache.plan(history("ccccdddd"))
    assert cache.spare(plan) == -1
    assert cache.open(history("ccccdddd"), plan) is None
    assert not cache.grow(first, 4 * BLOCK)
    assert cache.grow(first, 2 * BLOCK)
    assert len(first.table) == 2
    assert cache.grow(first, 2 * BLOCK + 1)
    assert len(first.table) == 3
    cache.close(first)
    assert cache.pool.free == 3
