"""Keys of traces: chained, even, the same everywhere; and the filter that knows which came before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.traces.block_keys import as_keys, number_of, prefix_hashes
from hotprefix.traces.seen_keys import SeenKeys

ROWS = st.lists(st.lists(st.integers(-2, 2), max_size=6), min_size=1, max_size=8)


@given(rows=ROWS, seeds=st.data())
def test_keys_are_equal_exactly_where_seed_and_prefix_are(
    rows: list[list[int]], seeds: st.DataObject
) -> None:
    given_seeds = [seeds.draw(st.integers(0, 1)) for _ in rows]
    keys = as_keys(prefix_hashes(rows, given_seeds), [len(row) for row in rows])
    names = {}
    for row, seed, found in zip(rows, given_seeds, keys, strict=True):
        assert len(found) == len(row)
        for place, key in enumerate(found):
            prefix = (seed, *row[: place + 1])
            assert names.setdefault(key, prefix) == prefix
            assert len(key) == 8
    assert len(names) == len(set(names.values()))


def test_keys_do_not_depend_on_the_batch() -> None:
    rows = [[1, 2, 3], [], [4], [1, 2, 9]]
    together = as_keys(prefix_hashes(rows, [7] * 4), [3, 0, 1, 3])
    alone = [as_keys(prefix_hashes([row], [7]), [len(row)])[0] for row in rows]
    assert together == alone


def test_keys_are_what_they_were() -> None:
    # Pinned: a replay evicts and samples by keys, so other keys would give other figures.
    assert number_of("scope") == 5_887_111_279_835_489_517
    assert prefix_hashes([[1, 2]], [3]).tolist() == [3_157_377_040_949_571_678, 9_401_961_325_013_232_301]


def test_keys_are_spread_evenly() -> None:
    hashes = prefix_hashes([[number] for number in range(4000)], [0] * 4000)
    for bit in range(64):
        assert 1700 < int(((hashes >> np.uint64(bit)) & np.uint64(1)).sum()) < 2300


def test_the_filter_knows_what_came_before() -> None:
    seen = SeenKeys(1 << 16)
    one = prefix_hashes([[number] for number in (1, 2, 1)], [0] * 3)
    assert seen.note(one).tolist() == [False, False, True]
    two = prefix_hashes([[number] for number in (3, 2, 3)], [0] * 3)
    assert seen.note(two).tolist() == [False, True, True]
    assert seen.unique == 3
    assert seen.note(np.zeros(0, np.uint64)).tolist() == []


def test_the_filter_errs_as_seldom_as_it_says() -> None:
    seen = SeenKeys(1 << 16)
    known = seen.note(prefix_hashes([[number] for number in range(4000)], [0] * 4000))
    # (1 − e^(−4·4000/65536))⁴ at the end, less before.
    assert known.mean() < 0.0023
