"""What every tier promises, whatever it is made of and wrapped in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import BlockStore
from tests.tiers.conftest import MakeStore
from tests.tiers.records import OTHER_SCOPE, fetch, key_of, present, record

LIMIT = 400_000
SIZE = 4000


@pytest.fixture
def store(make: MakeStore) -> BlockStore:
    return make(LIMIT)


def test_what_is_put_is_got(store: BlockStore) -> None:
    records = [record(number, size) for number, size in enumerate((0, 1, 63, 64, 65, 4096, 50_001))]
    for one in records:
        store.put(one)
    assert store.get([one.key for one in records]) == records
    assert store.contains([one.key for one in records]) == [True] * len(records)
    assert store.stats().records == len(records)
    assert store.stats().limit == LIMIT
    assert store.stats().bytes >= sum(len(one.payload) for one in records)


def test_answers_are_in_the_order_of_the_keys(store: BlockStore) -> None:
    for number in (1, 2, 3):
        store.put(record(number))
    asked = [3, 9, 1, 1, 8, 2]
    assert store.contains([key_of(number) for number in asked]) == [True, False, True, True, False, True]
    expected = [record(number) if number < 8 else None for number in asked]
    assert store.get([key_of(number) for number in asked]) == expected


def test_nothing_is_asked(store: BlockStore) -> None:
    assert store.contains([]) == []
    assert store.get([]) == []
    store.retain([], 2000)
    store.delete([])


def test_a_record_of_the_same_key_replaces(store: BlockStore) -> None:
    store.put(record(1, 100))
    store.put(record(1, 3000, version=1))
    store.put(record(1, 200, version=2))
    assert fetch(store, 1) == record(1, 200, version=2)
    assert store.stats().records == 1
    assert store.stats().dropped == 0


def test_deleted_is_gone(store: BlockStore) -> None:
    for number in range(4):
        store.put(record(number))
    store.delete([key_of(1), key_of(7), key_of(2), key_of(2)])
    assert present(store, range(8)) == [0, 3]
    assert fetch(store, 1) is None
    assert store.stats().records == 2
    store.put(record(1, version=1))
    assert fetch(store, 1) == record(1, version=1)


def test_the_limit_holds_and_old_records_go(store: BlockStore, clock: ManualClock) -> None:
    total = 4 * LIMIT // SIZE
    for number in range(total):
        clock.advance(1)
        store.put(record(number, SIZE))
        assert store.stats().bytes <= LIMIT
    kept = present(store, range(total))
    assert store.get([key_of(number) for number in kept]) == [record(number, SIZE) for number in kept]
    assert kept == list(range(total - len(kept), total))
    assert len(kept) == store.stats().records
    assert store.stats().dropped == total - len(kept)
    # At least half of the limit is in use, headers and headroom aside.
    assert len(kept) * SIZE > LIMIT / 2


def test_what_was_read_goes_later(store: BlockStore, clock: ManualClock) -> None:
    for number in range(200):
        clock.advance(1)
        store.put(record(number, SIZE))
        store.get([key_of(0)])
    assert fetch(store, 0) == record(0, SIZE)
    assert fetch(store, 1) is None


def test_retained_goes_last(store: BlockStore, clock: ManualClock) -> None:
    for number in range(10):
        store.put(record(number, SIZE))
    store.retain([key_of(number) for number in range(10)], clock.wall() + 10_000)
    for number in range(10, 400):
        clock.advance(1)
        store.put(record(number, SIZE))
    assert [fetch(store, number) for number in range(10)] == [record(n, SIZE) for n in range(10)]


def test_retained_goes_when_its_time_is_over(store: BlockStore, clock: ManualClock) -> None:
    store.put(record(0, SIZE))
    store.retain([key_of(0), key_of(99)], clock.wall() + 10)
    for number in range(1, 400):
        clock.advance(1)
        store.put(record(number, SIZE))
    assert present(store, [0, 99]) == []


def test_more_retained_than_fits_is_no_error(store: BlockStore, clock: ManualClock) -> None:
    for number in range(200):
        clock.advance(1)
        store.put(record(number, SIZE))
        store.retain([key_of(number)], clock.wall() + 10_000)
        assert store.stats().bytes <= LIMIT
    assert store.stats().records * SIZE > LIMIT / 2


def test_too_large_is_dropped(store: BlockStore) -> None:
    store.put(record(1))
    store.put(record(2, LIMIT))
    assert present(store, [1, 2]) == [1]
    assert store.stats().dropped == 1


def test_other_scopes_are_dropped(store: BlockStore) -> None:
    store.put(record(1, scope=OTHER_SCOPE))
    assert present(store, [1]) == []
    assert fetch(store, 1) is None
    assert store.stats().dropped == 1


def test_threads(store: BlockStore) -> None:
    """No error, no wrong byte, no wrong account, whoever does what at the same time."""

    def work(seed: int) -> None:
        for step in range(60):
            number = (seed * 17 + step * 5) % 40
            if step % 3:
                store.put(record(number, SIZE, version=number))
            elif step % 15:
                found = fetch(store, number)
                assert found is None or found == record(number, SIZE, version=number)
            else:
                store.delete([key_of(number)])

    with ThreadPoolExecutor(4) as threads:
        for job in [threads.submit(work, seed) for seed in range(4)]:
            job.result()
    store.delete([key_of(99)])  # a tier that is elsewhere tells its accounts with an answer
    assert store.stats().records == len(present(store, range(40)))
    assert store.stats().bytes <= LIMIT


def test_what_lasts_is_there_again(make: MakeStore, kind: str, clock: ManualClock) -> None:
    store = make(LIMIT)
    for number in range(20):
        store.put(record(number, SIZE))
    store.put(record(3, SIZE, version=1))
    store.delete([key_of(4)])
    store = make(LIMIT)
    if "ram" in kind:
        assert present(store, range(20)) == []
        return
    expected = [record(number, SIZE, version=int(number == 3)) for number in range(20)]
    expected[4] = None  # type: ignore[call-overload]
    assert store.get([key_of(number) for number in range(20)]) == expected
