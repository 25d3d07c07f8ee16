"""The cache against a naive twin, in any order of verbs, with every invariant checked after each."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.regulars import Regulars
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.kv import invariants
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.kv.tree import BlockTree
from tests.cache.machine_parts import TrueArena, naive_match, true_logits

BLOCK = 4
BLOCKS = 14
ROOTS = [CacheScope("model", "format", tenant=tenant).root() for tenant in ("a", "b")]
PROMPTS = st.lists(st.integers(0, 2), min_size=1, max_size=22)


class CacheMachine(RuleBasedStateMachine):
    """Opens, computes, grows, shares and closes sequences over a small arena."""

    granularity = 1
    keep_decoded = True

    @initialize(policy=st.sampled_from(sorted(POLICIES)), shortest=st.sampled_from([0, 0, 9, 13]))
    def build(self, policy: str, shortest: int) -> None:
        self.arena = TrueArena(BLOCKS, BLOCK)
        tree = BlockTree(BLOCK, POLICIES[policy](BLOCKS))
        rules = ReuseRules(BLOCK, self.granularity, self.keep_decoded)
        pool, logits, regulars = BlockPool(BLOCKS), LogitsStore(32 * 4 * 5), Regulars(shortest, most=6)
        self.cache = PrefixCache(pool, tree, rules, logits, self.arena, regulars=regulars)
        self.open: list[Holding] = []
        self.prompts: dict[int, int] = {}

    @rule(tokens=PROMPTS, tenant=st.integers(0, 1))
    def start(self, tokens: list[int], tenant: int) -> None:
        history = TokenHistory(ROOTS[tenant], tokens, BLOCK)
        plan = self.cache.plan(history)
        longest = naive_match(self.cache.tree, history)
        assert plan.reused <= len(tokens)
        if plan.logits is not None:
            assert plan.reused == longest == len(tokens)
            np.testing.assert_array_equal(plan.logits, true_logits(history))
        else:
            assert plan.reused == self.cache.rules.reusable_length(longest, len(tokens))
        before = self.cache.gauges()
        spare = self.cache.spare(plan)
        holding = self.cache.open(history, plan)
        assert (holding is None) == (spare < 0)
        if holding is None:
            assert self.cache.gauges() == before
            return
        assert holding.computed == plan.reused
        self.prompts[id(holding)] = len(tokens)
        self.open.append(holding)
        if holding.computed == len(tokens):
            self.prompt_is_done(holding)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def compute(self, data: st.DataObject) -> None:
        holding = data.draw(st.sampled_from(self.open))
        total = len(holding.history)
        if holding.computed == total:
            return
        end = self.cache.chunk_end(holding.computed, data.draw(st.integers(1, 9)), total)
        assert end > holding.computed
        for block in holding.table[holding.computed // BLOCK : -(-end // BLOCK)]:
            assert self.cache.pool.state(block) is BlockState.PRIVATE, "a sealed block is written to"
        self.arena.write(holding, holding.computed, end)
        holding.computed = holding.prefilled = end
        self.cache.commit(holding)
        if end == self.prompts[id(holding)]:
            self.cache.keep_logits(holding, true_logits(holding.history))
            self.prompt_is_done(holding)

    def prompt_is_done(self, holding: Holding) -> None:
        """For machines that promise more."""

    @precondition(lambda self: self.open)
    @rule(data=st.data(), token=st.integers(0, 2))
    def decode(self, data: st.DataObject, token: int) -> None:
        holding = data.draw(st.sampled_from(self.open))
        if holding.computed < len(holding.history):
            return
        if not self.cache.grow(holding, len(holding.history) + 1):
            assert self.cache.pool.free + self.cache.tree.evictable == 0
            return
        holding.history.append(token)
        self.arena.write(holding, holding.computed, holding.computed + 1)
        holding.computed += 1
        self.cache.commit(holding)

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def share_tail(self, data: st.DataObject) -> None:
        self.cache.share_tail(data.draw(st.sampled_from(self.open)))

    @precondition(lambda self: self.open)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        holding = data.draw(st.sampled_from(self.open))
        self.open.remove(holding)
        self.cache.close(holding)

    @invariant()
    def books_are_right(self) -> None:
        if hasattr(self, "cache"):
            cache = self.cache
            invariants.check(cache.tree, cache.pool, cache.leases, cache.private_blocks(self.open))

    @invariant()
    def bytes_are_right(self) -> None:
        for holding in getattr(self, "open", []):
            self.arena.verify(holding)

    def teardown(self) -> None:
        if hasattr(self, "cache"):
            for holding in self.open:
                self.cache.close(holding)
            assert len(self.cache.leases) == 0
            assert self.cache.pool.count(BlockState.PRIVATE) == 0
            assert self.cache.tree.evict(len(self.cache.tree)) is not None


class QuantisedMachine(CacheMachine):
    """The same where a block's bytes depend on when its tokens came: whole blocks only."""

    granularity = BLOCK


class ExactQuantisedMachine(CacheMachine):
    """Whole blocks, none of them written by decoding: a prompt's bytes are those of an uncached run."""

    granularity = BLOCK
    keep_decoded = False

    def prompt_is_done(self, holding: Holding) -> None:
        self.arena.verify_written_at_once(holding)


TestPrefixCache = CacheMachine.TestCase
TestPrefixCache.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
TestQuantisedPrefixCache = QuantisedMachine.TestCase
TestExactQuantisedPrefixCache = ExactQuantisedMachine.TestCase
TestExactQuantisedPrefixCache.settings = settings(max_examples=80, stateful_step_count=60, deadline=None)
TestQuantisedPrefixCache.settings = settings(max_examples=80, stateful_step_count=60, deadline=None)


@pytest.mark.parametrize("policy", sorted(POLICIES))
def test_long_random_runs_keep_every_invariant(policy: str) -> None:
    """Thousands of one-shot and repeated prompts through a small arena: nothing leaks or is confused."""
    random = Random(7)
    arena = TrueArena(40, BLOCK)
    tree = BlockTree(BLOCK, POLICIES[policy](40))
    cache = PrefixCache(BlockPool(40), tree, ReuseRules(BLOCK), LogitsStore(4096), arena)
    for turn in range(1500):
        history = TokenHistory(ROOTS[turn % 2], random.choices(range(3), k=random.randint(1, 40)), BLOCK)
        holding = cache.open(history, cache.plan(history))
        assert holding is not None
        arena.verify(holding)
        arena.write(holding, holding.computed, len(history))
        holding.computed = holding.prefilled = len(history)
        cache.commit(holding)
        cache.close(holding)
        if turn % 100 == 0:
            invariants.check(cache.tree, cache.pool, cache.leases, [])
    assert cache.gauges().evicted > 1000
    assert len(cache.leases) == 0
