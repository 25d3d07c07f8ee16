"""The RAM tier: what it hands on, and what its accounts are worth."""

from __future__ import annotations

import tracemalloc

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import Record
from hotprefix.tiers.ram import OVERHEAD_BYTES, RamStore
from tests.tiers.records import SCOPE, key_of, present, record

SIZE = 1000


def full_of(count: int, clock: ManualClock) -> RamStore:
    return RamStore(count * (SIZE + OVERHEAD_BYTES), SCOPE, clock)


def test_the_order_is_that_of_use(clock: ManualClock) -> None:
    store = full_of(4, clock)
    gone: list[tuple[Record, bool]] = []
    store.spill_to(lambda victim, retained: gone.append((victim, retained)))
    for number in range(4):
        store.put(record(number, SIZE))
    store.get([key_of(0)])
    store.touch([key_of(1), key_of(99)])
    store.retain([key_of(2)], clock.wall() + 10)
    assert store.newest_first() == [key_of(2), key_of(1), key_of(0), key_of(3)]
    for number in range(4, 8):
        store.put(record(number, SIZE))
    assert [victim for victim, _ in gone] == [record(number, SIZE) for number in (3, 0, 1, 4)]
    clock.advance(11)
    store.put(record(8, SIZE))
    store.put(record(9, SIZE))
    # Its time was over before the newest ones came, but after the others.
    assert gone[4:] == [(record(5, SIZE), False), (record(6, SIZE), False)]
    store.put(record(10, SIZE))
    store.put(record(11, SIZE))
    assert gone[6:] == [(record(7, SIZE), False), (record(2, SIZE), False)]


def test_a_clock_that_is_set_back_does_not_turn_the_order_round(clock: ManualClock) -> None:
    store = full_of(3, clock)
    for number in range(3):
        store.put(record(number, SIZE))
        clock.advance(1)
    clock._ahead -= 86_400.0
    store.retain([key_of(0)], clock.wall() + 10)
    for number in range(3, 5):
        store.put(record(number, SIZE))
        clock.advance(1)
    assert present(store, range(5)) == [0, 3, 4]
    clock.advance(11)
    store.put(record(5, SIZE))
    assert present(store, range(6)) == [0, 4, 5]
    store.put(record(6, SIZE))
    store.put(record(7, SIZE))
    assert present(store, range(8)) == [5, 6, 7]


def test_a_retained_victim_says_so(clock: ManualClock) -> None:
    store = full_of(2, clock)
    gone: list[tuple[Record, bool]] = []
    store.spill_to(lambda victim, retained: gone.append((victim, retained)))
    for number in range(2):
        store.put(record(number, SIZE))
    store.retain([key_of(0), key_of(1)], clock.wall() + 10)
    store.put(record(2, SIZE))
    assert gone == [(record(2, SIZE), False)]
    store.put(record(3, SIZE + 1, version=1))
    store.retain([key_of(0)], 0.0)
    store.put(record(4, SIZE))
    assert gone[1:] == [(record(3, SIZE + 1, version=1), False), (record(0, SIZE), False)]
    assert present(store, range(5)) == [1, 4]
    store.put(record(5, 2 * SIZE))
    store.get([key_of(5)])


def test_a_victim_is_there_until_it_is_handed_on(clock: ManualClock) -> None:
    store = full_of(1, clock)
    seen: list[bool] = []

    def spill(victim: Record, retained: bool) -> None:
        seen.extend(store.contains([victim.key]))
        assert store.get([victim.key]) == [victim]
        if victim.position:
            raise ZeroDivisionError

    store.spill_to(spill)
    store.put(record(0, SIZE))
    store.put(record(1, SIZE))
    assert present(store, [0, 1]) == [1]
    with pytest.raises(ZeroDivisionError):
        store.put(record(2, SIZE))
    assert present(store, [0, 1, 2]) == [2]
    assert seen == [True, True]


def test_the_overhead_is_not_understated(clock: ManualClock) -> None:
    """What a record really takes besides its payload, as the interpreter counts it."""
    count = 2000
    store = full_of(count, clock)
    tracemalloc.start()
    try:
        for number in range(count):
            store.put(record(number, 0))
            store.retain([key_of(number)], clock.wall() + 10)
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert store.stats().records == count
    assert taken <= store.stats().bytes


def test_nothing_is_left_after_close(clock: ManualClock) -> None:
    store = full_of(4, clock)
    store.put(record(1, SIZE))
    store.close()
    assert store.get([key_of(1)]) == [None]
    assert store.stats().bytes == 0
