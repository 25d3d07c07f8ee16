"""Who gets which precision, and what happens when all want the best."""

from __future__ import annotations

from math import ceil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotprefix.pages.codecs.experts import DROPPED, FLOAT8, OFFSETS, Experts, experts_down_to, nearest

SHARES = (0.05, 0.1, 0.2, 0.4, 0.15, 0.1)


def scores_of(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_everybody_gets_the_nearest_offset_where_there_is_room() -> None:
    experts = Experts((1, 0, -1), (1.0, 1.0, 1.0), 1.0)
    assert experts.choose(scores_of(2.0, 0.6, 0.4, -0.4, -0.6, -9.0)).tolist() == [0, 0, 1, 1, 2, 2]


def test_the_overflow_goes_to_the_next_expert_and_the_most_deserving_stay() -> None:
    """Room for 2 of 8, then 4, then all: of six who want the best, two get it and four the next."""
    experts = Experts((2, 1, 0), (0.25, 0.5, 0.25), 1.0)
    chosen = experts.choose(scores_of(5, 9, 6, 7, 8, 4, 0, 0))
    assert chosen.tolist() == [1, 0, 1, 1, 0, 1, 2, 2]


def test_overflow_runs_on_to_the_last_which_refuses_nobody() -> None:
    experts = Experts((2, 1, 0), (0.25, 0.25, 0.5), 1.0)
    chosen = experts.choose(np.full(8, 9, np.float32))
    assert np.bincount(chosen).tolist() == [2, 2, 4]


def test_a_larger_capacity_lets_more_in() -> None:
    scores = np.full(8, 9, np.float32)
    assert np.bincount(Experts((1, 0), (0.25, 0.75), 2.0).choose(scores)).tolist() == [4, 4]


@given(
    scores=st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=200),
    capacity=st.floats(1, 3),
    cold=st.sampled_from(["int2", "int4", "drop", "fp8", "int8"]),
)
def test_nobody_passes_a_better_one_and_no_expert_is_overfull(
    scores: list[float], capacity: float, cold: str
) -> None:
    experts = experts_down_to(cold, SHARES, capacity)
    row = np.array(scores, np.float32)
    chosen = experts.choose(row)
    ordered = chosen[np.argsort(-row, kind="stable")]
    assert (np.diff(ordered.astype(int)) >= 0).all()
    counts = np.bincount(chosen, minlength=len(experts.offsets))
    for count, share in list(zip(counts, experts.shares, strict=True))[:-1]:
        assert count <= ceil(capacity * share * len(row))
    # Never better than asked for.
    assert (chosen >= nearest(row, experts.offsets)).all()


def test_cold_names_the_last_expert() -> None:
    assert experts_down_to("int2", SHARES, 1.5).offsets == OFFSETS
    assert experts_down_to("int4", SHARES, 1.5).offsets == (3, 2, 1, 0)
    assert experts_down_to("int8", SHARES, 1.5).offsets == (4,)
    assert experts_down_to("drop", SHARES, 1.5).offsets == (3, 2, 1, 0, -1, DROPPED)
    assert experts_down_to("fp8", SHARES, 1.5).offsets == (3, FLOAT8)
    for cold in ("int2", "int4", "int8", "drop", "fp8"):
        assert sum(experts_down_to(cold, SHARES, 1.5).shares) == pytest.approx(1)


def test_what_can_not_be_is_refused() -> None:
    with pytest.raises(ValueError, match="no cold precision 'int1'; choose one of fp8, int8"):
        experts_down_to("int1", SHARES, 1.5)
    for capacity in (0.9, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="between 1 and 1000"):
            experts_down_to("int2", SHARES, capacity)
