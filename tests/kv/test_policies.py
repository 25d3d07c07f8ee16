"""Eviction policies by the exact order in which blocks go."""

from __future__ import annotations

from hotprefix.kv.node import Node
from hotprefix.kv.policy.base import CandidateHeap
from hotprefix.kv.policy.lru import LruPolicy, by_recency
from hotprefix.kv.policy.slru import SlruPolicy
from tests.kv.trees import Grove


class TestLru:
    def test_leaves_go_before_parents_oldest_first(self) -> None:
        grove = Grove(LruPolicy())
        grove.add("aaaabbbb")  # blocks 0, 1
        grove.add("ccccdddd")  # blocks 2, 3
        assert grove.order() == [1, 0, 3, 2]

    def test_a_use_renews_the_whole_path(self) -> None:
        grove = Grove(LruPolicy())
        first = grove.add("aaaabbbb")
        grove.add("ccccdddd")
        grove.use(first)
        assert grove.order() == [3, 2, 1, 0]

    def test_a_parent_that_becomes_a_leaf_takes_its_own_rank(self) -> None:
        grove = Grove(LruPolicy())
        grove.add("aaaabbbb")  # 0, 1
        grove.add("cccc")  # 2
        grove.use(grove.add("aaaa"))
        # Block 1 is the oldest leaf; its parent was used after block 2.
        assert grove.order() == [1, 2, 0]

    def test_a_touch_without_a_hold_ranks_again(self) -> None:
        grove = Grove(LruPolicy())
        first = grove.add("aaaa")
        grove.add("bbbb")
        grove.tree.touch([first])
        assert grove.order() == [1, 0]

    def test_a_shared_parent_outlives_all_its_children(self) -> None:
        grove = Grove(LruPolicy())
        grove.add("aaaabbbb")  # 0, 1
        grove.add("aaaacccc")  # 2
        grove.add("dddd")  # 3
        assert grove.order() == [1, 2, 0, 3]


class TestSlru:
    def test_what_was_used_twice_outlives_what_came_later(self) -> None:
        grove = Grove(SlruPolicy(10))
        used = grove.add("aaaa")  # 0
        grove.use(used)
        for text in ("bbbb", "cccc", "dddd"):
            grove.add(text)
        assert grove.order() == [1, 2, 3, 0]

    def test_protection_outlasts_a_scan(self) -> None:
        """One-shot prompts wash over; LRU would have lost the block that is used again and again."""
        grove = Grove(SlruPolicy(10))
        grove.use(grove.add("aaaa"))
        for number in range(100):
            grove.add(chr(1000 + number) * 4)
            if number >= 5:
                assert grove.tree.evict(1) == [number - 4]
        assert grove.order()[-1] == 0

    def test_the_least_recently_protected_is_demoted_over_the_share(self) -> None:
        grove = Grove(SlruPolicy(5))  # four may be protected
        nodes = [grove.add(letter * 4) for letter in "abcde"]
        grove.add("ffff")  # block 5 is never used
        for node in nodes:
            grove.use(node)
        # Block 0 was demoted: on probation, and there it is the newest but for block 5's age.
        assert grove.order() == [5, 0, 1, 2, 3, 4]

    def test_a_demoted_block_competes_by_its_recency(self) -> None:
        grove = Grove(SlruPolicy(1))  # one may be protected
        first, second = grove.add("aaaa"), grove.add("bbbb")
        grove.add("cccc")  # 2
        grove.use(first)
        grove.add("dddd")  # 3
        grove.use(second)
        assert grove.order() == [2, 0, 3, 1]

    def test_a_held_block_that_is_demoted_comes_back_on_probation(self) -> None:
        grove = Grove(SlruPolicy(1))
        first, second = grove.add("aaaa"), grove.add("bbbb")
        grove.tree.hold([first])
        grove.tree.touch([first])
        grove.use(second)  # takes the only protected place
        grove.tree.drop([first])
        grove.add("cccc")  # 2
        assert grove.order() == [0, 2, 1]

    def test_an_evicted_block_starts_anew(self) -> None:
        grove = Grove(SlruPolicy(10))
        grove.use(grove.add("aaaa"))
        assert grove.tree.evict(1) == [0]
        grove.add("aaaa")  # 1
        grove.add("bbbb")  # 2
        assert grove.order() == [1, 2]


class TestCandidateHeap:
    @staticmethod
    def nodes(count: int) -> list[Node]:
        grove = Grove()
        return [grove.add(chr(1000 + number) * 4) for number in range(count)]

    def test_memory_stays_within_a_constant_of_the_candidates(self) -> None:
        heap = CandidateHeap(by_recency)
        nodes = self.nodes(10)
        for turn in range(5000):
            heap.add(nodes[turn % 10])
            if turn % 3 == 0:
                heap.discard(nodes[turn % 7])
            assert len(heap._heap) <= 2 * 10 + 65
        assert len(heap) <= 10

    def test_adding_again_takes_the_rank_of_now(self) -> None:
        heap = CandidateHeap(by_recency)
        first, second = self.nodes(2)
        heap.add(first)
        heap.add(second)
        first.touched = 99
        heap.add(first)
        assert len(heap) == 2
        assert [heap.pop(), heap.pop()] == [second, first]
        assert heap.peek() is None

    def test_ranks_stay_until_they_are_asked_for_again(self) -> None:
        heap = CandidateHeap(by_recency)
        first, second = self.nodes(2)
        heap.add(first)
        heap.add(second)
        first.touched = 99
        assert heap.peek() is first
        heap.rerank()
        assert heap.peek() is second
        assert len(heap) == 2

    def test_discarding_what_is_not_in_does_nothing(self) -> None:
        heap = CandidateHeap(by_recency)
        first, second = self.nodes(2)
        heap.add(first)
        heap.discard(second)
        heap.discard(first)
        heap.discard(first)
        assert len(heap) == 0
        assert first not in heap
