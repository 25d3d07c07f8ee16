"""The adaptive policy: LRU until it knows better, better where traffic allows, never far behind."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from hotprefix.base.ids import BlockKey
from hotprefix.kv.node import Node
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.policy.adaptive import REMEMBERED, AdaptivePolicy
from hotprefix.kv.policy.base import EvictionPolicy
from hotprefix.kv.policy.lru import LruPolicy
from hotprefix.kv.policy.lru_shadow import LruShadow
from hotprefix.kv.policy.rehearsal import Rehearsal
from hotprefix.kv.policy.reuse_stats import AGES, ReuseStats
from hotprefix.kv.policy.trial import FIRST_REST, MOST_BEHIND
from tests.kv.trees import BLOCK, Grove, history


def word(number: int, blocks: int = 1) -> str:
    """A text of its own of so many blocks."""
    return chr(0x1000 + number) * BLOCK * blocks


class Cache:
    """A grove that never holds more than `capacity` blocks."""

    def __init__(self, policy: EvictionPolicy, capacity: int) -> None:
        self.grove, self.capacity = Grove(policy), capacity
        self.hits = self.wanted = 0

    def serve(self, text: str) -> None:
        """What a request for `text` does."""
        tree, tokens = self.grove.tree, history(text)
        keys = tokens.keys(len(text) // BLOCK)
        known = tree.match(tokens.root, keys).nodes
        self.hits += len(known)
        self.wanted += len(keys)
        tree.hold(known)
        tree.evict(max(0, len(tree) + len(keys) - len(known) - self.capacity))
        tree.touch(known)
        node = self.grove.add(text)
        tree.hold(node.path()[len(known) :])
        tree.drop(reversed(node.path()))


def hits(policy: EvictionPolicy, capacity: int, texts: Iterator[str]) -> int:
    cache = Cache(policy, capacity)
    for text in texts:
        cache.serve(text)
    return cache.hits


def scan_beside_hot_set(seed: int) -> Iterator[str]:
    random = Random(seed)
    for turn in range(1500):
        yield word(random.randrange(6))
        for place in range(3):
            yield word(100 + 3 * turn + place)


def moving_working_set(seed: int) -> Iterator[str]:
    """Old favourites that nobody wants any more."""
    random = Random(seed)
    for epoch in range(150):
        for _ in range(30):
            yield word(4 * epoch + random.randrange(7))


def conversations(seed: int) -> Iterator[str]:
    """Talks of up to six turns, many at once, behind one system prompt; two of three end at once."""
    random = Random(seed)
    talks: list[tuple[str, int]] = []
    for number in range(1500):
        if random.random() < 1 / 3:
            talks.append((word(0) + word(10 + 10 * number), random.randrange(2, 7)))
        yield word(0) + word(15 + 10 * number, 2)
        if talks:
            place = random.randrange(len(talks))
            text, left = talks[place]
            yield text
            talks[place] = (text + word(10 + 10 * number + left), left - 1)
            if left == 1:
                del talks[place]


def test_it_is_lru_until_it_has_seen_a_capacity() -> None:
    orders = []
    for policy in (AdaptivePolicy(100), LruPolicy()):
        grove = Grove(policy)
        often = grove.add("aaaabbbb")
        for _ in range(3):
            grove.use(often)
        grove.use(grove.add("ccccdddd"))
        grove.add("eeee")
        orders.append(grove.order())
    assert orders[0] == orders[1]


@pytest.mark.parametrize("capacity", [8, 12])
def test_a_hot_set_that_one_scan_washes_out_is_learned(capacity: int) -> None:
    traffic = scan_beside_hot_set
    assert hits(AdaptivePolicy(capacity), capacity, traffic(3)) > 1.4 * hits(
        LruPolicy(), capacity, traffic(3)
    )


@pytest.mark.parametrize("traffic", [moving_working_set, conversations])
@pytest.mark.parametrize("capacity", [8, 16, 40])
def test_it_does_not_fall_behind_lru(traffic: object, capacity: int) -> None:
    assert callable(traffic)
    counts = [hits(policy, capacity, traffic(2)) for policy in (AdaptivePolicy(capacity), LruPolicy())]
    assert counts[0] >= counts[1] * 0.995


def test_uses_before_an_eviction_count() -> None:
    grove = Grove(AdaptivePolicy(10))
    node = grove.add("aaaa")
    for _ in range(2):
        grove.use(node)
    grove.order()
    again = grove.add("aaaa")
    assert again.hits == 0
    assert again.mark >> 2 == 3


def test_a_block_that_was_gone_on_with_is_told_from_a_last_one() -> None:
    grove = Grove(AdaptivePolicy(10))
    node = grove.add("aaaabbbb")
    parent = node.parent
    assert parent is not None
    assert grove.tree.evict(1) == [1]
    assert (parent.mark & 1, node.mark & 1) == (1, 0)


def test_all_it_remembers_is_bounded() -> None:
    policy = AdaptivePolicy(8)
    cache = Cache(policy, 8)
    for text in scan_beside_hot_set(4):
        cache.serve(text)
        assert len(policy._remembered) <= REMEMBERED * 8
        assert len(policy._watched) <= 8
        assert len(policy._candidates._heap) <= 2 * 8 + 65
    assert len(policy._gone) <= 2 * REMEMBERED * 8
    assert len(policy._trial._lru._keys) <= 8
    assert len(policy._trial._rehearsal) <= 8
    assert len(policy._trial._rehearsal._uses) <= REMEMBERED * 8
    assert len(policy._trial._rehearsal._noted) <= 8


def test_of_a_large_cache_a_sample_is_watched() -> None:
    policy = AdaptivePolicy(40_000)
    grove = Grove(policy)
    for number in range(2000):
        grove.add(word(number))
    assert 2000 / 16 < len(policy._watched) < 2000 / 4


def test_what_goes_for_no_lack_of_room_is_in_no_cache() -> None:
    """A tail goes once a longer block has come: LRU must not be thought to keep both."""
    policy = AdaptivePolicy(8)
    grove = Grove(policy)
    tail = grove.add("aaaabb")
    longer = grove.add("aaaabbbb")
    (subsumed,) = grove.tree.subsumed(longer)
    assert subsumed is tail
    grove.tree.remove(tail)
    policy._trial.settle()
    here = set(history("aaaabbbb").keys(2))
    assert set(policy._trial._lru._keys) == set(policy._trial._rehearsal._nodes) == here
    assert not policy._gone
    assert {node.key for node in policy._watched} == here


def test_old_blocks_of_another_policy_do_not_turn_time_back() -> None:
    ours, theirs = AdaptivePolicy(8), AdaptivePolicy(8)
    old = Grove(theirs).add("aaaa")
    grove = Grove(ours)
    for text in ("bbbb", "cccc", "dddd"):
        grove.add(text)
    theirs.removed(old)
    ours.inserted(old)
    assert ours._now == 3
    assert ours._watched[old] == 1


def newest_first(policy: AdaptivePolicy) -> AdaptivePolicy:
    """It takes the newest for the worst."""
    policy._value_of = lambda kind, age: age  # type: ignore[method-assign]
    return policy


def test_what_would_lose_to_lru_is_never_followed() -> None:
    policy = newest_first(AdaptivePolicy(16))
    cache, plain = Cache(policy, 16), Cache(LruPolicy(), 16)
    for text in moving_working_set(2):
        cache.serve(text)
        plain.serve(text)
        assert not policy.is_trusted
        assert cache.hits == plain.hits
    assert plain.hits > 100


def test_what_was_good_once_is_followed_no_longer_than_it_loses_little() -> None:
    policy = newest_first(AdaptivePolicy(16))
    cache, plain = Cache(policy, 16), Cache(LruPolicy(), 16)
    policy._trial.is_trusted = True
    trusted = []
    for text in moving_working_set(2):
        cache.serve(text)
        plain.serve(text)
        trusted.append(policy.is_trusted)
    assert trusted[0]
    assert not any(trusted[len(trusted) // 10 :])
    assert policy._trial._rest == 2 * FIRST_REST
    # Two capacities: what was lost until that was seen, and until the cache was LRU's again.
    assert plain.hits - 2 * 16 < cache.hits < plain.hits


class TestLruShadow:
    @pytest.mark.parametrize("capacity", [6, 12, 30])
    def test_it_counts_exactly_the_hits_of_lru(self, capacity: int) -> None:
        shadow = LruShadow(capacity)
        cache = Cache(LruPolicy(), capacity)
        for text in conversations(5):
            cache.serve(text)
            for place in range(len(text) // BLOCK):
                shadow.note(history(text).key_at((place + 1) * BLOCK))
            shadow.settle()
        assert cache.hits > 100
        assert shadow.found == cache.hits

    def test_what_is_forgotten_was_wanted_but_is_there_no_more(self) -> None:
        shadow, (first, second) = LruShadow(2), history("aaaabbbb").keys(2)
        for key in (first, second):
            shadow.note(key)
            shadow.settle()
        shadow.note(first)
        shadow.forget(first)
        shadow.settle()
        assert shadow.found == 1
        assert list(shadow._keys) == [second]
        for _ in range(10):
            shadow.forget(first)
            assert len(shadow._forgotten) <= 2

    def test_a_request_that_never_settles_is_bounded(self) -> None:
        shadow = LruShadow(3)
        for number in range(100):
            shadow.note(BlockKey(bytes([number])))
            assert len(shadow._noted) <= 4


class TestRehearsal:
    @pytest.mark.parametrize("capacity", [6, 12, 30])
    @pytest.mark.parametrize("traffic", [conversations, scan_beside_hot_set])
    def test_by_age_it_counts_the_hits_of_lru(self, capacity: int, traffic: object) -> None:
        """A request is longer than the smallest cache here, so a few hits may differ."""
        assert callable(traffic)
        rehearsal = Rehearsal(capacity, lambda node: (node.touched,), 0)
        cache = Cache(Watcher(rehearsal), capacity)
        for text in traffic(5):
            cache.serve(text)
            rehearsal.settle()
            assert len(rehearsal) <= capacity
        assert cache.hits > 100
        assert rehearsal.found == pytest.approx(cache.hits, rel=0.01)

    def test_a_chain_goes_from_its_end(self) -> None:
        """However little its beginning is worth."""
        rehearsal = Rehearsal(3, lambda node: (-node.touched,), 0)
        grove = Grove(Watcher(rehearsal))
        grove.add("aaaabbbbcccc")
        rehearsal.settle()
        grove.add("dddd")
        rehearsal.settle()
        keys = history("aaaabbbbcccc").keys(3)
        assert set(rehearsal._nodes) == {*keys[:2], *history("dddd").keys(1)}

    def test_only_a_last_block_is_forgotten(self) -> None:
        rehearsal = Rehearsal(2, lambda node: (node.touched,), 0)
        grove, (first, second) = Grove(Watcher(rehearsal)), history("aaaabbbb").keys(2)
        grove.add("aaaabbbb")
        rehearsal.forget(first)
        assert set(rehearsal._nodes) == {first, second}
        rehearsal.forget(second)
        rehearsal.settle()
        assert set(rehearsal._nodes) == {first}
        grove.add("cccc")
        grove.add("dddd")
        rehearsal.settle()
        assert set(rehearsal._nodes) == {*history("cccc").keys(1), *history("dddd").keys(1)}

    def test_uses_before_an_eviction_come_back_if_they_are_remembered(self) -> None:
        for remembered, uses in ((2, 1), (0, 0)):
            rehearsal = Rehearsal(1, lambda node: (node.touched,), remembered)
            grove = Grove(Watcher(rehearsal))
            first = grove.add("aaaa")
            rehearsal.settle()
            grove.add("bbbb")
            rehearsal.settle()
            rehearsal.note(first, None)
            assert rehearsal._nodes[first.key].mark >> 2 == uses


class Watcher(LruPolicy):
    """LRU that tells a rehearsal of every block that is wanted."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        super().__init__()
        self._rehearsal = rehearsal

    def inserted(self, node: Node) -> None:
        super().inserted(node)
        self._note(node)

    def touched(self, node: Node) -> None:
        super().touched(node)
        self._note(node)

    def _note(self, node: Node) -> None:
        above = node.parent
        self._rehearsal.note(node, above.key if above is not None and above.parent is not None else None)


class TestReuseStats:
    CAPACITY = 1000

    def taught(self) -> ReuseStats:
        """Class 2 comes back at once or never, class 4 late and mostly, class 6 never."""
        stats = ReuseStats(self.CAPACITY, 8)
        for _ in range(2000):
            stats.reused(2, 20)
            stats.ended(2, 4000)
            stats.reused(4, 900)
            stats.ended(6, 4000)
        stats.learn([], [])
        return stats

    def test_before_anything_is_known_all_are_worth_the_same(self) -> None:
        stats = ReuseStats(self.CAPACITY, 8)
        assert {stats.value_of(kind, age) for kind in range(8) for age in (0, 5, 500, 9999)} == {0.0}

    def test_what_comes_back_is_worth_more_than_what_does_not(self) -> None:
        stats = self.taught()
        assert stats.value_of(2, 0) > stats.value_of(4, 0) > stats.value_of(6, 0)
        # Past the age at which class 2 comes back, class 4 is worth more.
        assert stats.value_of(4, 200) > stats.value_of(2, 200)

    def test_a_value_never_rises_with_age(self) -> None:
        stats = self.taught()
        for kind in range(8):
            values = [stats.value_of(kind, age) for age in range(0, 6000, 7)]
            assert values == sorted(values, reverse=True)
            assert values[-1] >= 0

    def test_what_waits_still_counts_as_not_reused_so_far(self) -> None:
        values = []
        for waiting in (0, 5000):
            stats = ReuseStats(self.CAPACITY, 8)
            for _ in range(500):
                stats.reused(2, 200)
            stats.learn([2] * waiting, [300.0] * waiting)
            values.append(stats.value_of(2, 0))
        assert values[1] < values[0] / 2

    def test_old_samples_fade(self) -> None:
        stats = self.taught()
        for _ in range(100):
            stats.learn([], [])
        assert max(max(row) for row in stats._reused) < 20

    def test_ages_beyond_the_last_are_one(self) -> None:
        stats = self.taught()
        assert stats.value_of(2, stats.horizon) == stats.value_of(2, 10 * stats.horizon)
        assert len(stats._values[0]) == AGES + 1


def test_the_allowed_lag_is_small() -> None:
    assert MOST_BEHIND <= 0.1
    assert POLICIES["adaptive"](10).name == "adaptive"
