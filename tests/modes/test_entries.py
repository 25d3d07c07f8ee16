"""The book of entries: what expires goes, and nobody looks while nothing can have expired."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from hotprefix.base.ids import BlockKey
from hotprefix.modes.entries import Entry, EntryBook


class Counting(EntryBook):
    """Counts how often all entries are gone through."""

    looks = 0

    def __iter__(self) -> Iterator[Entry]:
        self.looks += 1
        return super().__iter__()


def entry(number: int, expires: float, ttl: float = 10.0) -> Entry:
    return Entry(BlockKey(bytes([number])), "t", 1, ttl, expires, f"pin-{number}")


def test_requests_do_not_go_through_all_entries() -> None:
    book = Counting(1000)
    for number in range(200):
        book.add(entry(number, 100.0 + number))
    for _ in range(50):
        assert book.sweep(99.0) == []
    assert book.looks == 0
    assert [gone.pin for gone in book.sweep(101.0)] == ["pin-0", "pin-1"]
    assert book.sweep(101.5) == []
    assert book.looks == 1


@given(
    st.lists(
        st.tuples(st.sampled_from(["add", "renew", "drop"]), st.integers(0, 5), st.floats(0, 9)), max_size=40
    )
)
def test_exactly_what_has_expired_goes(steps: list[tuple[str, int, float]]) -> None:
    book = EntryBook(1000)
    now = 0.0
    for verb, number, seconds in steps:
        now += seconds
        living = {one.key for one in book if one.expires > now}
        gone = {one.key for one in book.sweep(now)}
        assert {one.key for one in book} == living
        assert not gone & living
        found = book.find(BlockKey(bytes([number])), now)
        if verb == "add":
            book.add(entry(number, now + seconds, ttl=seconds))
        elif found is not None:
            (book.renew if verb == "renew" else lambda one, _: book.drop(one, "evicted"))(found, now)
