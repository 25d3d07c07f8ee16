"""Where a prompt may be split: always forward, never one token left, only at permitted lengths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.cache.rules import LEAST_COMPUTED, ReuseRules

FREE = ReuseRules(32)
WHOLE = ReuseRules(32, 32)
RULES = st.sampled_from([FREE, WHOLE, ReuseRules(4), ReuseRules(4, 4), ReuseRules(1)])


@pytest.mark.parametrize(
    ("rules", "matched", "total", "reused"),
    [
        (FREE, 100, 200, 100),
        (FREE, 200, 200, 198),
        (FREE, 199, 200, 198),
        (FREE, 198, 200, 198),
        (FREE, 0, 200, 0),
        (FREE, 1, 1, 0),
        (FREE, 2, 2, 0),
        (FREE, 3, 3, 1),
        (WHOLE, 100, 200, 96),
        (WHOLE, 96, 96, 64),
        (WHOLE, 96, 97, 64),
        (WHOLE, 96, 98, 96),
        (WHOLE, 31, 200, 0),
        (WHOLE, 1, 1, 0),
    ],
)
def test_reusable_length(rules: ReuseRules, matched: int, total: int, reused: int) -> None:
    assert rules.reusable_length(matched, total) == reused


@pytest.mark.parametrize(
    ("matched", "limit", "total", "reused"),
    [
        (300, 128, 400, 128),
        (128, 128, 400, 128),
        (127, 128, 400, 126),
        (100, 128, 400, 100),
        (300, 400, 400, 300),
        (400, 400, 400, 398),
        (128, 128, 129, 128),
    ],
)
def test_what_is_computed_in_pieces_can_be_reused_a_piece_at_a_time(
    matched: int, limit: int, total: int, reused: int
) -> None:
    assert FREE.reusable_within(matched, limit, total) == reused


@given(RULES, st.integers(0, 500), st.integers(1, 500))
def test_reuse_leaves_enough_to_compute(rules: ReuseRules, matched: int, total: int) -> None:
    reused = rules.reusable_length(matched, total)
    assert 0 <= reused <= matched
    assert reused % rules.granularity == 0
    assert reused == 0 or total - reused >= LEAST_COMPUTED
    # And it is the most that these rules allow.
    better = reused + rules.granularity
    assert better > matched or total - better < LEAST_COMPUTED


@given(RULES, st.integers(1, 400), st.integers(0, 400), st.integers(1, 100))
def test_chunks_go_on_and_end_at_the_end(rules: ReuseRules, total: int, matched: int, wanted: int) -> None:
    start = rules.reusable_length(matched, total)
    while start < total:
        end = rules.chunk_end(start, wanted, total)
        assert start < end <= total
        assert end == total or end % rules.granularity == 0
        assert end - start >= LEAST_COMPUTED or total == 1
        assert total - end != 1
        if end != total:
            # What the budget asked for, or the least step; a chunk never swells beyond that.
            assert end - start <= max(wanted, rules.granularity, LEAST_COMPUTED)
        else:
            assert end - start <= max(wanted, rules.granularity, LEAST_COMPUTED) + LEAST_COMPUTED - 1
        start = end
    assert start == total


@given(RULES, st.integers(1, 400), st.data())
def test_any_budgets_in_any_order_will_do(rules: ReuseRules, total: int, data: st.DataObject) -> None:
    start, steps = 0, 0
    while start < total:
        start = rules.chunk_end(start, data.draw(st.integers(1, 64)), total)
        steps += 1
        assert total - start != 1
    assert steps <= total


@pytest.mark.parametrize(
    ("rules", "computed", "start"),
    [(FREE, 33, 32), (FREE, 64, 63), (WHOLE, 33, 32), (WHOLE, 64, 64), (WHOLE, 95, 94)],
)
def test_a_token_is_computed_again_but_never_into_a_full_quantised_block(
    rules: ReuseRules, computed: int, start: int
) -> None:
    assert rules.redo_from(computed) == start
