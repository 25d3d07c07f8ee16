"""Prefix reuse verb by verb, over an arena whose bytes show every wrong share, copy or overwrite."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotprefix.base.errors import LogicError
from hotprefix.cache.holding import Holding
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.kv import invariants
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.pool import BlockPool, BlockState
from hotprefix.kv.tree import BlockTree
from tests.cache.machine_parts import TrueArena, true_logits
from tests.kv.trees import BLOCK, OTHER_ROOT, history


class World:
    """A cache of a few blocks, and what sequences do to it."""

    def __init__(self, blocks: int, *, granularity: int = 1, policy: str = "lru") -> None:
        self.arena = TrueArena(blocks, BLOCK)
        tree = BlockTree(BLOCK, POLICIES[policy](blocks))
        rules = ReuseRules(BLOCK, granularity)
        self.cache = PrefixCache(BlockPool(blocks), tree, rules, LogitsStore(4096), self.arena)
        self.open: list[Holding] = []

    def start(self, text: str) -> Holding:
        """Open a prompt and check the books and bytes."""
        prompt = history(text)
        holding = self.cache.open(prompt, self.cache.plan(prompt))
        assert holding is not None
        self.open.append(holding)
        self.check()
        return holding

    def compute(self, holding: Holding, end: int | None = None) -> None:
        """Compute up to `end` as prefill would."""
        end = len(holding.history) if end is None else end
        for block in holding.table[holding.computed // BLOCK : -(-end // BLOCK)]:
            assert self.cache.pool.state(block) is BlockState.PRIVATE, "I10: a sealed block is written to"
        self.arena.write(holding, holding.computed, end)
        holding.computed = holding.prefilled = end
        self.cache.commit(holding)
        self.check()

    def answer(self, holding: Holding, text: str) -> None:
        """Decode the letters of `text`."""
        for letter in text:
            assert self.cache.grow(holding, len(holding.history) + 1)
            holding.history.append(ord(letter))
            self.compute(holding)

    def close(self, holding: Holding) -> None:
        self.open.remove(holding)
        self.cache.close(holding)
        self.check()

    def serve(self, text: str, answer: str = "") -> int:
        """A whole request; returns how many tokens of its prompt were reused."""
        holding = self.start(text)
        reused = holding.computed
        if reused < len(text):
            self.compute(holding)
            self.cache.keep_logits(holding, true_logits(holding.history))
        self.answer(holding, answer)
        self.close(holding)
        return reused

    def check(self) -> None:
        cache = self.cache
        invariants.check(cache.tree, cache.pool, cache.leases, cache.private_blocks(self.open))
        for holding in self.open:
            self.arena.verify(holding)


@pytest.mark.parametrize(
    ("second", "reused"),
    [
        ("aaaabbbbccXX", 10),
        ("aaaabbbbcXXX", 9),
        ("aaaabXXXX", 5),
        ("aXXXXXXX", 1),
        ("XXXX", 0),
        ("aaaabbbbccccdd", 12),
        ("aaaabbbbcccc", 10),
        ("aaaabbbbccc", 9),
        ("aaaabbbb", 6),
        ("aa", 0),
    ],
)
def test_reuse_is_exact_to_the_token(second: str, reused: int) -> None:
    """Divergence inside a block costs only what comes after it."""
    world = World(12)
    first = world.start("aaaabbbbcccc")
    world.compute(first)
    world.close(first)
    assert world.serve(second) == reused


def test_two_sequences_share_blocks_and_keep_their_own_tails() -> None:
    world = World(12)
    world.serve("aaaabbbbc")
    left, right = world.start("aaaabbbbcdd"), world.start("aaaabbbbcee")
    assert left.table[:2] == right.table[:2]
    assert left.table[2] != right.table[2]
    world.compute(left)
    world.compute(right)
    world.answer(left, "xyz")
    world.answer(right, "uvw")


def test_an_open_sequence_is_reused_as_far_as_it_is_sealed() -> None:
    world = World(12)
    first = world.start("aaaabbbbcccc")
    world.compute(first, 6)
    assert world.cache.plan(history("aaaabbbbcccc")).reused == 4
    world.compute(first)
    assert world.cache.plan(history("aaaabbbbcccc")).reused == 10


def test_generated_tokens_are_reused_by_the_next_turn() -> None:
    world = World(12)
    world.serve("aaaabb", answer="ccccdddd")
    assert world.serve("aaaabbccccddddQQ") == 14


def test_an_exact_repeat_needs_no_computing() -> None:
    world = World(12)
    assert world.serve("aaaabbbbcc") == 0
    plan = world.cache.plan(history("aaaabbbbcc"))
    assert plan.logits is not None
    assert plan.logits.tolist() == true_logits(history("aaaabbbbcc")).tolist()
    assert world.serve("aaaabbbbcc") == 10
    assert world.serve("aaaabbbb") == 6  # a prefix of it is no repeat
    assert world.serve("aaaabbbb") == 8  # until it was asked once


@pytest.mark.parametrize("prompt", ["aaaabbbbcc", "aaaabbbb"])
@pytest.mark.parametrize("answer", ["", "d", "dddddd"])
@pytest.mark.parametrize("granularity", [1, BLOCK])
def test_a_repeat_is_exact_whatever_was_answered(prompt: str, answer: str, granularity: int) -> None:
    """The answer fills the prompt's last block; what a repeat needs of it must outlive that."""
    world = World(20, granularity=granularity)
    world.serve(prompt, answer)
    assert world.serve(prompt, answer) == len(prompt)


def test_logits_without_their_blocks_are_of_no_use() -> None:
    world = World(3)
    world.serve("aaaabbbb")
    world.serve("ccccddddeeee")
    plan = world.cache.plan(history("aaaabbbb"))
    assert (plan.reused, plan.logits) == (0, None)


def test_whole_blocks_only_where_bytes_depend_on_the_pass() -> None:
    world = World(12, granularity=BLOCK)
    world.serve("aaaabbbbcc")
    assert world.serve("aaaabbbbccXX") == 8
    assert world.serve("aaaabXXX") == 4


def test_tenants_do_not_share() -> None:
    world = World(12)
    world.serve("aaaabbbb")
    assert world.cache.plan(history("aaaabbbbcc", OTHER_ROOT)).reused == 0


def test_a_stale_plan_is_refused() -> None:
    world = World(12)
    world.serve("aaaabbbb")
    prompt = history("aaaabbbbcc")
    plan = world.cache.plan(prompt)
    world.serve("dddd")
    with pytest.raises(LogicError, match="stale"):
        world.cache.open(prompt, plan)
    world.check()


def test_opening_when_full_changes_nothing() -> None:
    world = World(4)
    world.serve("aaaab")
    holding = world.start("ccccdddd")
    before = world.cache.gauges()
    prompt = history("aaaabbbbcccc")
    plan = world.cache.plan(prompt)
    assert world.cache.spare(plan) == -1
    assert world.cache.open(prompt, plan) is None
    assert world.cache.gauges() == before
    world.check()
    assert world.cache.plan(prompt) == plan
    world.close(holding)


def test_growing_when_full_changes_nothing() -> None:
    world = World(4)
    first, second = world.start("aaaabbbb"), world.start("ccccdddd")
    world.compute(first)
    table = list(first.table)
    assert not world.cache.grow(first, 9)
    assert first.table == table
    world.close(second)
    assert world.cache.grow(first, 9)
    assert len(first.table) == 3


def test_growing_to_what_is_there_is_nothing() -> None:
    world = World(4)
    holding = world.start("aaaab")
    table = list(holding.table)
    assert world.cache.grow(holding, 8)
    assert holding.table == table


def test_a_full_arena_evicts_just_what_is_missing() -> None:
    world = World(4)
    world.serve("aaaabbbb")
    world.serve("ccccdddd")
    assert world.cache.gauges().evicted == 0
    world.start("eeee")
    assert world.cache.gauges().evicted == 1
    assert world.cache.plan(history("aaaabbbbXX")).reused == 4
    assert world.cache.plan(history("ccccddddXX")).reused == 8


def test_a_shared_tail_is_a_copy_that_others_can_find() -> None:
    world = World(12)
    holding = world.start("aaaabb")
    world.compute(holding)
    assert world.cache.plan(history("aaaabbXX")).reused == 4
    world.cache.share_tail(holding)
    world.check()
    assert world.cache.plan(history("aaaabbXX")).reused == 6
    blocks = world.cache.gauges()
    world.cache.share_tail(holding)
    assert world.cache.gauges() == blocks
    world.answer(holding, "yy")  # the sequence's own block goes on
    assert world.serve("aaaabbXX") == 6


def test_a_tail_is_not_shared_when_there_is_no_room_or_no_tail() -> None:
    world = World(2)
    holding = world.start("aaaabb")
    world.compute(holding)
    before = world.cache.gauges()
    world.cache.share_tail(holding)
    assert world.cache.gauges() == before
    world.close(holding)
    whole = World(4)
    holding = whole.start("aaaa")
    whole.compute(holding)
    before = whole.cache.gauges()
    whole.cache.share_tail(holding)
    assert whole.cache.gauges() == before


def test_longer_tails_replace_those_they_begin_with() -> None:
    world = World(12)
    world.serve("aaaab")
    world.serve("aaaabc")
    assert world.cache.gauges().cached == 2
    world.serve("aaaabcdefg")
    assert world.cache.gauges().cached == 3
    world.serve("aaaabx")
    assert world.cache.gauges().cached == 4


def test_what_was_not_computed_is_not_offered() -> None:
    world = World(12)
    holding = world.start("aaaabbbbcccc")
    world.compute(holding, 6)
    world.close(holding)
    assert world.cache.plan(history("aaaabbbbcccc")).reused == 6
    assert world.cache.gauges().private == 0


def test_a_closed_holding_is_closed() -> None:
    world = World(4)
    holding = world.start("aaaa")
    world.close(holding)
    with pytest.raises(LogicError, match="closed"):
        world.cache.close(holding)


@pytest.mark.parametrize("kept", ["aaaabbbbccccddd", "aaaabbbbccccd"])
def test_the_longest_prompt_fits_though_its_own_tail_is_in_the_way(kept: str) -> None:
    """Arena of four blocks, all cached, all wanted: the tail is not copied but taken."""
    world = World(4)
    world.serve(kept)
    prompt = history("aaaabbbbccccdXX")
    plan = world.cache.plan(prompt)
    assert plan.source is not None
    assert world.cache.spare(plan) == 0
    assert world.serve("aaaabbbbccccdXX") == 13


def test_the_longest_prompt_fits_though_others_hang_on_its_tail() -> None:
    world = World(4)
    world.serve("aaaabbbbccccdddd")
    assert world.serve("aaaabXXXXXXXXXX") == 5


def test_a_tail_that_somebody_reads_is_never_taken() -> None:
    world = World(4)
    world.serve("aaaabbbb")
    reader = world.start("aaaabbbbcccc")  # holds both blocks
    prompt = history("aaaabbXXXX")
    plan = world.cache.plan(prompt)
    assert plan.reused == 6
    assert world.cache.spare(plan) == -1
    assert world.cache.open(prompt, plan) is None
    world.check()
    world.close(reader)


def test_a_lone_sequence_can_use_the_whole_arena() -> None:
    """What it computed beside blocks that were there already must not cost room in the end."""
    world = World(4)
    world.serve("aaaabbbbcccc", "d")
    holding = world.start("aaaabbbbcccc")
    if holding.computed < 12:
        world.compute(holding)
    world.close(holding)
    world.cache.logits = LogitsStore(0)
    holding = world.start("aaaabbbbcccc")
    assert holding.computed == 10
    world.compute(holding)  # its third block is in the tree already
    world.answer(holding, "XXXX")
    assert len(holding.history) == 16


TEXT = st.text(alphabet="ab", min_size=1, max_size=17)


@settings(max_examples=150, deadline=None)
@given(st.integers(4, 12), st.sampled_from([1, BLOCK]), st.lists(TEXT, min_size=1, max_size=6), st.data())
def test_spare_is_exact(blocks: int, granularity: int, texts: list[str], data: st.DataObject) -> None:
    """Just what is promised is left after `open`, and a negative promise is a refusal."""
    world = World(blocks, granularity=granularity)
    for text in texts:
        prompt = history(text)
        plan = world.cache.plan(prompt)
        spare = world.cache.spare(plan)
        holding = world.cache.open(prompt, plan)
        assert (holding is None) == (spare < 0)
        if holding is None:
            continue
        gauges = world.cache.gauges()
        assert gauges.free + gauges.cached - gauges.held == spare
        world.open.append(holding)
        world.check()
        if holding.computed < len(text):
            world.compute(holding)
        if data.draw(st.booleans()):
            world.close(holding)
