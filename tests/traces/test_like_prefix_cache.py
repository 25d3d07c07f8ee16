"""The replay's replica finds and evicts what the real `PrefixCache` finds and evicts.

Prompts end with a question of two tokens, as real ones end with something new. Their block is not
kept in formats where only whole blocks are, so the real cache has one block more to compute it in.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree
from hotprefix.traces.replica import Replica

BLOCK = 4
LONGEST = 6
PROMPTS = st.lists(
    st.tuples(st.sampled_from(["a", "b"]), st.lists(st.integers(0, 2), min_size=1, max_size=LONGEST)),
    max_size=60,
)


class NoCopies:
    """There are no bytes to move."""

    def copy(self, source: BlockId, target: BlockId) -> None:
        """Nothing to do."""


class RealCache:
    """Runs prompts through the cache of the server, without a model."""

    def __init__(self, policy: str, blocks: int) -> None:
        tree = BlockTree(BLOCK, POLICIES[policy](blocks))
        rules = ReuseRules(BLOCK, granularity=BLOCK)
        self.cache = PrefixCache(BlockPool(blocks + 1), tree, rules, LogitsStore(0), NoCopies())

    def serve(self, history: TokenHistory) -> tuple[int, int]:
        """Blocks found, and blocks evicted so far."""
        plan = self.cache.plan(history)
        found = plan.reused // BLOCK
        holding = self.cache.open(history, plan)
        assert holding is not None
        holding.computed = holding.prefilled = len(history)
        self.cache.commit(holding)
        self.cache.close(holding)
        return found, self.cache.gauges().evicted


@pytest.mark.parametrize("policy", sorted(POLICIES))
@settings(max_examples=60, deadline=None)
@given(prompts=PROMPTS, blocks=st.integers(LONGEST, 20))
def test_same_hits_and_same_evictions(policy: str, prompts: list[tuple[str, list[int]]], blocks: int) -> None:
    real, replica = RealCache(policy, blocks), Replica(policy, blocks)
    for now, (scope, blocks_of_prompt) in enumerate(prompts):
        root = CacheScope("model", "format", tenant=scope).root()
        tokens = [BLOCK * number + place for number in blocks_of_prompt for place in range(BLOCK)]
        history = TokenHistory(root, [*tokens, 99, 99], BLOCK)
        keys: list[BlockKey] = history.keys(len(blocks_of_prompt))
        expected = real.serve(history)
        found = replica.serve(scope, keys, float(now)).hits
        assert (found, replica.evicted) == expected
        assert replica.size == len(real.cache.tree)
        assert replica.depth(scope, keys) == len(keys)
