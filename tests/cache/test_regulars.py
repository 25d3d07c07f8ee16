"""Short prompts are kept when they come again, long ones at once."""

from __future__ import annotations

import pytest

from hotprefix.cache.regulars import Regulars
from tests.cache.test_prefix_cache import World
from tests.kv.trees import BLOCK, OTHER_ROOT, history

SHORTEST = 12


def world(*, granularity: int = 1) -> World:
    made = World(24, granularity=granularity)
    made.cache.regulars = Regulars(SHORTEST)
    return made


class TestRegulars:
    def test_nothing_is_short_without_a_limit(self) -> None:
        regulars = Regulars()
        assert regulars.meet(history("a"), 0) == 1
        assert regulars.limit(history("a"), 0, 1) == 1
        assert len(regulars) == 0

    def test_a_prompt_is_known_from_its_second_time_on(self) -> None:
        regulars = Regulars(SHORTEST)
        assert [regulars.meet(history("aaaabbbbc"), 0) for _ in range(3)] == [0, 9, 9]

    def test_what_was_met_counts_block_by_block_from_the_start(self) -> None:
        regulars = Regulars(SHORTEST)
        regulars.meet(history("aaaabbbbc"), 0)
        assert regulars.meet(history("aaaabbbbdd"), 0) == 2 * BLOCK
        assert regulars.meet(history("aaaaccccbb"), 0) == BLOCK
        assert regulars.meet(history("ccccbbbbc"), 0) == 0

    def test_blocks_in_the_cache_count_though_nobody_met_them(self) -> None:
        assert Regulars(SHORTEST).meet(history("aaaabbbbc"), 1) == BLOCK

    def test_tenants_do_not_meet_each_other_s(self) -> None:
        regulars = Regulars(SHORTEST)
        regulars.meet(history("aaaa"), 0)
        assert regulars.meet(history("aaaa", OTHER_ROOT), 0) == 0

    def test_long_text_is_kept_whole(self) -> None:
        regulars = Regulars(SHORTEST)
        assert regulars.meet(history("a" * SHORTEST), 0) == SHORTEST
        assert regulars.limit(history("a" * SHORTEST), 0, 7) == 7
        assert len(regulars) == 0

    def test_keys_are_forgotten_a_generation_at_a_time(self) -> None:
        regulars = Regulars(SHORTEST, most=4)
        for letter in "abcdefghijklmnopqrstuvwxyz":
            regulars.meet(history(letter), 0)
            assert len(regulars) < 8
        assert regulars.meet(history("z"), 0) == 1
        assert regulars.meet(history("a"), 0) == 0


class TestCache:
    def test_a_short_prompt_that_never_returns_leaves_nothing(self) -> None:
        served = world()
        free = served.cache.pool.free
        assert served.serve("aaaabbbb", "cc") == 0
        assert served.cache.pool.free == free
        assert len(served.cache.tree) == len(served.cache.logits) == 0

    @pytest.mark.parametrize("granularity", [1, BLOCK])
    def test_the_third_time_is_an_exact_repeat(self, granularity: int) -> None:
        served = world(granularity=granularity)
        assert [served.serve("aaaabbbbc") for _ in range(4)] == [0, 0, 9, 9]

    def test_a_short_beginning_that_many_share_is_kept_and_their_ends_are_not(self) -> None:
        served = world()
        assert [served.serve("aaaa" + end * 4) for end in "bcd"] == [0, 0, 4]
        assert len(served.cache.tree) == 1

    def test_a_short_prompt_finds_what_a_long_one_left(self) -> None:
        served = world()
        served.serve("aaaabbbbccccdd")
        before = len(served.cache.tree)
        assert served.serve("aaaabbbbXX") == 8
        assert served.serve("aaaabXX") == 5
        assert len(served.cache.tree) == before

    def test_an_answer_that_makes_it_long_is_kept_with_its_prompt(self) -> None:
        served = world()
        served.serve("aaaab", "bbbcccc")
        assert served.serve("aaaabbbbcccXXX") == 11

    def test_an_answer_that_leaves_it_short_is_not(self) -> None:
        served = world()
        served.serve("aaaab", "bbbccc")
        assert len(served.cache.tree) == 0

    def test_tails_and_logits_are_offered_like_blocks(self) -> None:
        served = world()
        for kept in (False, True):
            holding = served.start("aaaab")
            served.compute(holding)
            served.cache.share_tail(holding)
            assert (len(served.cache.tree) == 2) is kept
            served.close(holding)
