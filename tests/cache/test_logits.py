"""Kept logits: bounded, least recently used first, copies that nobody can change."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.ids import BlockKey
from hotprefix.cache.logits import Logits, LogitsStore

ROW = 8 * 4


def key(number: int) -> BlockKey:
    return BlockKey(number.to_bytes(32, "little"))


def row(number: int) -> Logits:
    return np.full(8, number, dtype=np.float32)


def test_what_is_kept_comes_back() -> None:
    store = LogitsStore(4 * ROW)
    store.put(key(1), row(1))
    kept = store.get(key(1))
    assert kept is not None
    np.testing.assert_array_equal(kept, row(1))
    assert store.get(key(2)) is None
    assert (len(store), store.bytes) == (1, ROW)


def test_the_longest_unused_makes_room() -> None:
    store = LogitsStore(3 * ROW)
    for number in (1, 2, 3):
        store.put(key(number), row(number))
    store.get(key(1))
    store.put(key(2), row(2))  # known already: used, not replaced
    store.put(key(4), row(4))
    assert [store.get(key(number)) is not None for number in (1, 2, 3, 4)] == [True, True, False, True]


def test_a_kept_row_is_a_copy_and_read_only() -> None:
    store = LogitsStore(4 * ROW)
    mine = row(1)
    store.put(key(1), mine)
    mine[:] = 9
    kept = store.get(key(1))
    assert kept is not None and kept[0] == 1
    with pytest.raises(ValueError, match="read-only"):
        kept[0] = 2


def test_a_row_of_a_matrix_does_not_keep_the_matrix() -> None:
    store = LogitsStore(4 * ROW)
    store.put(key(1), np.zeros((1000, 8), dtype=np.float32)[5])
    kept = store.get(key(1))
    assert kept is not None and kept.base is None


@pytest.mark.parametrize("limit", [0, ROW - 1])
def test_a_row_over_the_limit_is_not_kept(limit: int) -> None:
    store = LogitsStore(limit)
    store.put(key(1), row(1))
    assert (len(store), store.bytes, store.get(key(1))) == (0, 0, None)


def test_a_row_of_just_the_limit_is_kept() -> None:
    store = LogitsStore(ROW)
    store.put(key(1), row(1))
    store.put(key(2), row(2))
    assert (len(store), store.bytes) == (1, ROW)
    assert store.get(key(2)) is not None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=60), st.integers(0, 5))
def test_it_never_holds_more_than_its_limit(steps: list[tuple[bool, int]], rows: int) -> None:
    store = LogitsStore(rows * ROW + 5)
    recent: list[int] = []
    for is_put, number in steps:
        if is_put:
            store.put(key(number), row(number))
            recent = [*(n for n in recent if n != number), number][-rows:] if rows else []
        else:
            found = store.get(key(number))
            assert (found is not None) == (number in recent)
            if number in recent:
                recent = [*(n for n in recent if n != number), number]
        assert store.bytes == ROW * len(store) <= store.limit_bytes
        assert len(store) == len(recent)
