"""The adaptive policy in the cache as it is used: partial blocks, answers, several requests at once."""

from __future__ import annotations

from random import Random

import pytest

from hotprefix.base.ids import BlockId
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.kv.policy.adaptive import AdaptivePolicy
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree

BLOCK = 32
ROOT = CacheScope("model", "format").root()


class NoCopies:
    """There are no bytes to move."""

    def copy(self, source: BlockId, target: BlockId) -> None:
        """Nothing to do."""


class Talks:
    """Conversations of a few turns behind one system prompt, half of the turns in the latest one."""

    def __init__(self, cache: PrefixCache, at_once: int) -> None:
        self._cache, self._at_once = cache, at_once
        self._random = Random(1)
        self._system = self._ids(100)
        self._talks: list[tuple[list[int], int]] = []
        self._running: list[tuple[Holding, list[int]]] = []

    def turn(self) -> None:
        if not self._talks or self._random.random() < 0.25:
            self._talks.append((self._system, self._random.randrange(2, 12)))
        place = self._random.randrange(len(self._talks)) if self._random.random() < 0.5 else -1
        said, left = self._talks[place]
        prompt = said + self._ids(self._random.randrange(10, 60))
        answer = self._ids(self._random.randrange(10, 60))
        if len(self._running) == self._at_once:
            self._finish(*self._running.pop(0))
        history = TokenHistory(ROOT, prompt, BLOCK)
        holding = self._cache.open(history, self._cache.plan(history))
        assert holding is not None
        holding.computed = holding.prefilled = len(history)
        self._cache.commit(holding)
        self._running.append((holding, answer))
        self._talks[place] = (prompt + answer, left - 1)
        if left == 1:
            del self._talks[place]

    def _ids(self, count: int) -> list[int]:
        return self._random.choices(range(40_000), k=count)

    def _finish(self, holding: Holding, answer: list[int]) -> None:
        for token in answer:
            holding.history.append(token)  # type: ignore[arg-type]
            assert self._cache.grow(holding, len(holding.history))
            holding.computed += 1
        self._cache.close(holding)


@pytest.mark.parametrize("at_once", [1, 4])
def test_the_shadow_of_lru_finds_what_lru_finds(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the policy could fall behind LRU and not notice."""
    blocks = 300
    policy = AdaptivePolicy(blocks)
    monkeypatch.setattr(policy._trial, "judge", lambda now: None)  # so that it is LRU
    tree = BlockTree(BLOCK, policy)
    cache = PrefixCache(BlockPool(blocks), tree, ReuseRules(BLOCK), LogitsStore(0), NoCopies())
    talks = Talks(cache, at_once)
    for _ in range(1200):
        talks.turn()
    found = policy._trial._found
    assert cache.gauges().evicted > 2 * blocks
    assert policy._trial._lru.found == pytest.approx(found, rel=0.002)
    assert policy._trial._rehearsal.found == pytest.approx(found, rel=0.02)
