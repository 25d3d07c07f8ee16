"""Single flight: who computes what now, and that nobody waits for somebody who has stopped."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.ids import BlockKey
from hotprefix.cache.single_flight import SingleFlight
from tests.kv.trees import history


def keys(text: str) -> list[BlockKey]:
    return history(text).all_keys()


def test_the_first_to_claim_leads() -> None:
    flights = SingleFlight()
    flights.claim("first", keys("aaaabbbb"))
    flights.claim("second", keys("aaaacccc"))
    shared, left, right = keys("aaaabbbb")[0], keys("aaaabbbb")[1], keys("aaaacccc")[1]
    assert [flights.leader(key) for key in (shared, left, right)] == ["first", "first", "second"]
    assert flights.leader(keys("zzzz")[0]) is None
    assert len(flights) == 3


def test_a_block_that_is_done_has_no_leader() -> None:
    flights = SingleFlight()
    first, second = keys("aaaabbbb")
    flights.claim("a", [first, second])
    flights.done("b", first)  # not theirs
    assert flights.leader(first) == "a"
    flights.done("a", first)
    assert flights.leader(first) is None
    assert flights.leader(second) == "a"


def test_releasing_lifts_all_claims_of_one_owner_only() -> None:
    flights = SingleFlight()
    flights.claim("a", keys("aaaabbbb"))
    flights.claim("b", keys("ccccdddd"))
    flights.release("a")
    flights.release("a")
    flights.release("nobody")
    assert [flights.leader(key) for key in keys("aaaabbbb")] == [None, None]
    assert [flights.leader(key) for key in keys("ccccdddd")] == ["b", "b"]


def test_a_block_done_and_claimed_anew_stays_with_its_new_owner() -> None:
    flights = SingleFlight()
    (key,) = keys("aaaa")
    flights.claim("old", [key])
    flights.done("old", key)
    flights.claim("new", [key])
    flights.done("old", key)
    flights.release("old")
    assert flights.leader(key) == "new"


def test_following_ends_with_the_leader() -> None:
    flights = SingleFlight()
    flights.claim("a", keys("aaaa"))
    assert not flights.is_followed("a")
    flights.follow("a")
    assert flights.is_followed("a")
    flights.release("a")
    assert not flights.is_followed("a")


@given(
    st.lists(st.tuples(st.sampled_from(["claim", "done", "release"]), st.integers(0, 3), st.integers(0, 5)))
)
def test_nothing_is_left_when_all_have_gone(steps: list[tuple[str, int, int]]) -> None:
    flights = SingleFlight()
    blocks = [keys(letter * 4)[0] for letter in "abcdef"]
    for verb, owner, block in steps:
        if verb == "claim":
            flights.claim(owner, blocks[block:])
            assert all(flights.leader(key) is not None for key in blocks[block:])
        elif verb == "done":
            flights.done(owner, blocks[block])
        else:
            flights.release(owner)
            assert all(flights.leader(key) != owner for key in blocks)
    for owner in range(4):
        flights.release(owner)
    assert len(flights) == 0
    assert not flights._claims and not flights._followed
