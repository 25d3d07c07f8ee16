"""Guards: failures are misses, and a tier that fails again and again is left alone for a while."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.breaker import Breaker, BreakerRules, Leave
from hotprefix.tiers.faulty import Fault, FaultyStore
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.ram import RamStore
from tests.tiers.records import SCOPE, fetch, key_of, present, record

RULES = BreakerRules(failures=3, slow_seconds=2.0, pause_seconds=1.0, longest_pause=4.0)


class Bench:
    """A guarded tier whose fault can be set, on a clock that a slow call moves."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.fault: Fault | None = None
        self.ram = RamStore(1_000_000, SCOPE, clock)
        self.faulty = FaultyStore(self.ram, lambda call: self.fault, lambda: clock.advance(3))
        self.store = GuardedStore(self.faulty, clock, RULES)


@pytest.fixture
def bench(clock: ManualClock) -> Bench:
    return Bench(clock)


def test_any_failure_is_a_miss(bench: Bench) -> None:
    bench.store.put(record(1))
    bench.fault = Fault.KILLED
    assert fetch(bench.store, 1) is None
    bench.store.put(record(2))
    bench.fault = None
    assert fetch(bench.store, 1) == record(1)
    bench.fault = Fault.KILLED
    bench.store.retain([key_of(1)], 5000)
    bench.store.delete([key_of(1)])
    bench.fault = None
    assert present(bench.store, [1, 2]) == [1]
    stats = bench.store.tier_stats()
    assert (stats.errors, stats.hits, stats.misses) == (4, 1, 1)
    assert stats.last_error == "StoreError: killed on schedule"
    assert not stats.is_open


def test_a_bug_in_a_tier_is_a_miss_too(clock: ManualClock) -> None:
    class Broken(RamStore):
        def get(self, keys):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError

        def contains(self, keys):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError

        def stats(self):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError

        def close(self):  # type: ignore[no-untyped-def]
            raise ZeroDivisionError

    store = GuardedStore(Broken(1000, SCOPE, clock), clock)
    assert store.get([key_of(1)]) == [None]
    assert store.contains([key_of(1)]) == [False]
    assert store.tier_stats().records == 0
    store.close()
    assert store.tier_stats().errors == 5


def test_full_and_corrupt_tiers(bench: Bench) -> None:
    bench.fault = Fault.FULL
    assert not bench.store.put(record(1))
    assert present(bench.store, [1]) == []
    assert bench.store.tier_stats().written_records == 0
    bench.fault = None
    assert bench.store.put(record(1))
    assert bench.store.tier_stats().written_records == 1
    bench.fault = Fault.CORRUPT
    assert [fetch(bench.store, 1) for _ in range(200)] == [None] * 200
    assert bench.store.tier_stats().errors == 0


def test_after_failures_in_a_row_no_call_is_made(bench: Bench, clock: ManualClock) -> None:
    bench.store.put(record(1))
    bench.fault = Fault.KILLED
    for _ in range(3):
        fetch(bench.store, 1)
    calls = bench.faulty.calls
    assert not bench.store.is_available
    bench.fault = None
    assert fetch(bench.store, 1) is None
    assert present(bench.store, [1]) == []
    bench.store.put(record(2))
    assert bench.faulty.calls == calls
    stats = bench.store.tier_stats()
    assert stats.is_open
    assert (stats.skipped, stats.misses) == (2, 4)
    clock.advance(1)
    assert bench.store.is_available
    assert present(bench.store, [1]) == [1]
    assert fetch(bench.store, 1) == record(1)
    assert not bench.store.tier_stats().is_open


def test_people_are_told_when_a_tier_rests_and_when_it_is_back(clock: ManualClock) -> None:
    told: list[str] = []
    faults: list[Fault | None] = [None]
    inner = FaultyStore(RamStore(10_000, SCOPE, clock), lambda call: faults[0], lambda: clock.advance(3))
    store = GuardedStore(inner, clock, RULES, told.append)
    for faults[0] in (None, Fault.KILLED, None, Fault.SLOW, None):
        for _ in range(6):
            fetch(store, 1)
        clock.advance(60)
        fetch(store, 1)
    assert told == [
        "The ram tier is left alone for a while: StoreError: killed on schedule.",
        "The ram tier is used again.",
        "The ram tier is left alone for a while: calls take longer than 2 s.",
        "The ram tier is used again.",
    ]


def test_slow_calls_open_it_and_give_what_they_found(bench: Bench) -> None:
    bench.store.put(record(1))
    bench.fault = Fault.SLOW
    assert [fetch(bench.store, 1) for _ in range(3)] == [record(1)] * 3
    assert fetch(bench.store, 1) is None
    assert bench.store.tier_stats().errors == 0


def test_the_pause_doubles_up_to_the_longest(clock: ManualClock) -> None:
    breaker = Breaker(clock, RULES)
    for _ in range(3):
        assert breaker.enter() is Leave.CALL
        breaker.leave(Leave.CALL, None)
    for pause in (1, 2, 4, 4):
        clock.advance(pause - 0.01)
        assert breaker.enter() is Leave.NO_CALL
        clock.advance(0.01)
        assert breaker.enter() is Leave.PROBE
        assert breaker.enter() is Leave.NO_CALL  # one at a time
        breaker.leave(Leave.PROBE, None)
        assert breaker.is_open
    clock.advance(4)
    assert breaker.enter() is Leave.PROBE
    breaker.leave(Leave.PROBE, 0.1)
    assert not breaker.is_open
    for _ in range(3):
        breaker.enter()
        breaker.leave(Leave.CALL, None)
    clock.advance(1)
    assert breaker.enter() is Leave.PROBE


def test_a_call_from_before_it_opened_says_nothing(clock: ManualClock) -> None:
    breaker = Breaker(clock, RULES)
    early = breaker.enter()
    for _ in range(3):
        breaker.leave(breaker.enter(), None)
    breaker.leave(early, 0.1)
    assert breaker.is_open
    assert breaker.enter() is Leave.NO_CALL


def test_successes_between_failures_keep_it_closed(bench: Bench) -> None:
    for _ in range(5):
        for fault in (Fault.KILLED, Fault.KILLED, None):
            bench.fault = fault
            fetch(bench.store, 1)
    assert not bench.store.tier_stats().is_open


def test_counters(clock: ManualClock) -> None:
    class Slow(RamStore):
        """Takes half a second for whatever moves bytes."""

        def get(self, keys):  # type: ignore[no-untyped-def]
            clock.advance(0.5)
            return super().get(keys)

        def put(self, record):  # type: ignore[no-untyped-def]
            clock.advance(0.5)
            return super().put(record)

    store = GuardedStore(Slow(10_000_000, SCOPE, clock), clock)
    store.put(record(1, 2 << 20))
    store.put(record(2, 1000))
    store.get([key_of(1), key_of(2), key_of(3)])
    stats = store.tier_stats()
    assert (stats.name, stats.records, stats.limit) == ("ram", 2, 10_000_000)
    assert (stats.hits, stats.misses) == (2, 1)
    assert (stats.written_records, stats.written_bytes, stats.write_seconds) == (2, (2 << 20) + 1000, 1.0)
    assert (stats.read_bytes, stats.read_seconds) == ((2 << 20) + 1000, 0.5)
    assert store.read_bandwidth == 2 * ((2 << 20) + 1000)


def test_bandwidth_is_unknown_at_first(bench: Bench) -> None:
    bench.store.put(record(1))
    fetch(bench.store, 1)
    assert bench.store.read_bandwidth is None


def test_only_volatile_tiers_hand_on(bench: Bench, clock: ManualClock) -> None:
    gone: list[object] = []
    store = GuardedStore(RamStore(3000, SCOPE, clock), clock)
    spill: Callable[..., None] = lambda victim, retained: gone.append(victim)  # noqa: E731
    store.spill_to(spill)
    store.put(record(1))
    store.put(record(2))
    assert gone == [record(1)]
    assert store.newest_first() == [key_of(2)]
