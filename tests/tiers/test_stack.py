"""The stack: real threads and real tiers, without a sleep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import BlockStore, Record
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.facts import BlockFacts, Reason
from hotprefix.tiers.faulty import Fault, FaultyStore
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.placement import Costs, Placement
from hotprefix.tiers.ram import OVERHEAD_BYTES, RamStore
from hotprefix.tiers.redis import RedisStore
from hotprefix.tiers.runs import PIECE, RunLimits
from hotprefix.tiers.stack import StackLimits, TierStack
from tests.tiers.conftest import RedisServer, empty
from tests.tiers.records import OTHER_SCOPE, SCOPE, key_of, present
from tests.tiers.stacks import BLOCK, TOKENS, Answer, Gated, Plain, block, fetch, storage, store

HIT = BlockFacts(hits=1)
IDLE_HIT = BlockFacts(hits=1, reason=Reason.IDLE)
CHEAP = Placement(Costs(1e-9, 0.0, BLOCK))
"""Recomputing costs nothing: only what was hit or is pinned goes to disk."""

Build = Callable[..., TierStack]


def ram_of(blocks: int, clock: ManualClock) -> RamStore:
    return RamStore(blocks * (BLOCK + 1 + OVERHEAD_BYTES), SCOPE, clock)


@pytest.fixture
def build(clock: ManualClock) -> Iterator[Build]:
    stacks: list[TierStack] = []

    def build(
        *stores: BlockStore, placement: Placement | None = None, limits: StackLimits | None = None
    ) -> TierStack:
        tiers = [GuardedStore(one, clock) for one in stores]
        stacks.append(TierStack(tiers, storage(), clock, placement, limits))
        return stacks[-1]

    yield build
    for stack in stacks:
        stack.close(10)
        assert stack.failed == 0


@pytest.fixture
def disk(tmp_path: Path, clock: ManualClock) -> DiskStore:
    return DiskStore(tmp_path / "tier", 10_000_000, SCOPE, clock)


def test_what_is_stored_comes_back(build: Build, clock: ManualClock) -> None:
    stack = build(ram_of(100, clock))
    assert store(stack, range(20)) == [True] * 20
    assert stack.flush(30)
    assert stack.promising([key_of(number) for number in range(21)]) == 20
    assert fetch(stack, range(20)) == list(range(20))
    assert stack.stats()["ram"].hits == 20
    assert stack.dropped == 0


def test_a_run_ends_at_the_first_that_is_missing(build: Build, clock: ManualClock) -> None:
    stack = build(ram_of(100, clock))
    store(stack, [0, 1, 2, 4, 5])
    stack.flush(30)
    assert fetch(stack, range(6)) == [0, 1, 2]
    assert fetch(stack, range(3, 6)) == []
    assert fetch(stack, []) == []
    assert stack.promising([key_of(number) for number in range(6)]) == 3
    assert stack.promising([key_of(9)]) == 0


def test_a_run_over_all_tiers(
    build: Build, clock: ManualClock, disk: DiskStore, redis_server: RedisServer
) -> None:
    empty(redis_server)
    ram, remote = ram_of(100, clock), RedisStore(redis_server.url, 10_000_000, SCOPE, clock, timeout=30)
    for number in range(2 * PIECE):
        tier: BlockStore = (ram, disk, remote)[number % 3]
        tier.put(storage().encode(key_of(number), TOKENS * number, TOKENS, block(number)))
    stack = build(ram, disk, remote)
    keys = [key_of(number) for number in range(50)]
    assert fetch(stack, range(50)) == list(range(2 * PIECE))
    assert stack.promising(keys) == 50  # Redis might have more
    assert stack.flush(30)
    assert present(ram, range(50)) == list(range(2 * PIECE))  # promoted


def test_what_ram_has_no_room_for_goes_to_disk(build: Build, clock: ManualClock, disk: DiskStore) -> None:
    ram = ram_of(5, clock)
    stack = build(ram, disk)
    store(stack, range(20))
    stack.flush(30)
    assert present(ram, range(20)) == list(range(15, 20))
    assert present(disk, range(20)) == list(range(15))
    assert fetch(stack, range(20)) == list(range(20))
    # Found on disk, they come to RAM; what goes for them is written unless it is there.
    stack.flush(30)
    assert present(disk, range(20)) == list(range(20))
    assert stack.stats()["disk"].written_records == 20


def test_what_costs_nothing_to_recompute_is_not_written(
    build: Build, clock: ManualClock, disk: DiskStore
) -> None:
    stack = build(ram_of(5, clock), disk, placement=CHEAP)
    store(stack, range(10))
    store(stack, range(10, 20), HIT)
    store(stack, range(20, 30))
    stack.flush(30)
    assert present(disk, range(30)) == list(range(10, 20))
    assert store(stack, [40], BlockFacts(reason=Reason.IDLE)) == [False]
    assert store(stack, [41], IDLE_HIT) == [True]
    assert stack.dropped == 0  # nothing was missing but a reason


def test_a_hit_in_ram_counts_when_it_overflows(build: Build, clock: ManualClock, disk: DiskStore) -> None:
    stack = build(ram_of(4, clock), disk, placement=CHEAP)
    store(stack, range(4))
    stack.flush(30)
    assert fetch(stack, range(2)) == [0, 1]
    store(stack, range(10, 14))
    stack.flush(30)
    assert present(disk, range(20)) == [0, 1]


def test_what_comes_back_from_the_arena_was_in_use(build: Build, clock: ManualClock) -> None:
    """RAM still has it, and did not see the hits that it had in the arena."""
    ram = ram_of(4, clock)
    stack = build(ram)
    store(stack, range(4))
    stack.flush(30)
    store(stack, [0])
    stack.flush(30)
    store(stack, [4])
    stack.flush(30)
    assert present(ram, range(5)) == [0, 2, 3, 4]
    assert stack.stats()["ram"].written_records == 5


def test_what_is_retained_goes_to_disk(build: Build, clock: ManualClock, disk: DiskStore) -> None:
    """Whether it came before or after it was said; what is no longer retained does not."""
    ram = ram_of(4, clock)
    stack = build(ram, disk, placement=CHEAP)
    store(stack, [0, 1])
    stack.retain([key_of(1), key_of(2)], clock.wall() + 100)
    stack.retain([key_of(3)], clock.wall() - 1)
    store(stack, [2, 3])
    stack.flush(30)
    store(stack, range(10, 20))
    stack.flush(30)
    assert present(disk, [0, 3, *range(10, 20)]) == []
    assert present(ram, [0, 1, 2, 3]) == [1, 2]
    assert present(disk, [2]) == [2]  # pinned when it was evicted: written at once


def test_what_waits_to_be_written_is_there(build: Build, clock: ManualClock) -> None:
    gate = Gated(ram_of(100, clock))
    stack = build(gate)
    store(stack, range(3))
    assert gate.began.wait(30)
    assert stack.promising([key_of(number) for number in range(5)]) == 3
    gate.may_go.set()
    assert fetch(stack, range(3)) == [0, 1, 2]
    stack.flush(30)
    assert fetch(stack, range(3)) == [0, 1, 2]


def test_what_is_on_disk_goes_to_ram_when_it_leaves_the_arena(
    build: Build, clock: ManualClock, disk: DiskStore
) -> None:
    """It was saved while it lay idle; memory gives it back faster."""
    ram = ram_of(100, clock)
    stack = build(ram, disk)
    assert store(stack, [1, 2], IDLE_HIT) == [True, True]
    stack.flush(30)
    assert (present(ram, [1, 2]), present(disk, [1, 2])) == ([], [1, 2])
    assert store(stack, [1], HIT) == [True]
    stack.flush(30)
    assert present(ram, [1, 2]) == [1]
    assert stack.stats()["disk"].written_records == 2


def test_what_leaves_the_arena_on_its_way_to_disk_goes_to_ram_too(
    build: Build, clock: ManualClock, disk: DiskStore
) -> None:
    ram, gate = ram_of(100, clock), Gated(disk)
    stack = build(ram, gate)
    store(stack, [1, 2], IDLE_HIT)
    assert gate.began.wait(30)
    assert store(stack, [2], HIT) == [False]  # it waits already, and its bytes need no second copy
    gate.may_go.set()
    assert stack.flush(30)
    assert present(ram, [1, 2]) == [2]
    assert fetch(stack, [1, 2]) == [1, 2]


def test_a_block_that_is_hit_later_goes_to_redis_though_it_is_on_disk(
    build: Build, clock: ManualClock, disk: DiskStore, redis_server: RedisServer
) -> None:
    empty(redis_server)
    stack = build(disk, RedisStore(redis_server.url, 10_000_000, SCOPE, clock, timeout=30))
    for facts in (BlockFacts(reason=Reason.IDLE), IDLE_HIT, IDLE_HIT):
        store(stack, [1], facts)
        stack.flush(30)
    assert stack.stats()["redis"].written_records == 1
    assert stack.stats()["disk"].written_records == 1


def test_what_redis_did_not_take_is_offered_again(
    build: Build, clock: ManualClock, own_redis: RedisServer
) -> None:
    stack = build(RedisStore(own_redis.url, 10_000_000, SCOPE, clock, timeout=30))
    own_redis.stop()
    store(stack, [1], HIT)
    stack.flush(30)
    own_redis.start()
    store(stack, [1], HIT)
    stack.flush(30)
    assert fetch(stack, [1]) == [1]


def test_a_record_of_a_codec_that_is_read_no_more_is_replaced(
    build: Build, clock: ManualClock, disk: DiskStore
) -> None:
    disk.put(damaged(1, codec="old"))
    stack = build(disk)
    assert fetch(stack, [1]) == []
    assert store(stack, [1], HIT) == [True]
    stack.flush(30)
    assert fetch(stack, [1]) == [1]


def test_no_memory_for_a_copy_is_a_dropped_block(build: Build, clock: ManualClock) -> None:
    def read() -> NDArray[np.uint8]:
        raise MemoryError

    stack = build(ram_of(100, clock))
    assert not stack.store(key_of(1), TOKENS, TOKENS, read, HIT)
    assert stack.dropped == 1
    assert store(stack, [1]) == [True]


def test_nobody_waits_for_a_reader_that_is_stuck(build: Build, clock: ManualClock, disk: DiskStore) -> None:
    """The tiers behind a network file system that hangs promise nothing, and neither do the others."""
    ram, gate = ram_of(100, clock), Gated(disk)
    stack = build(ram, gate)
    disk.put(damaged(0))
    ram.put(damaged(1))
    answer = Answer()
    stack.fetch([key_of(0)], answer)
    assert gate.began.wait(30)
    assert stack.promising([key_of(0), key_of(1)]) == 2
    clock.advance(11)
    assert stack.promising([key_of(0), key_of(1)]) == 0
    gate.may_go.set()
    assert len(answer.wait()) == 1
    assert stack.flush(30)
    assert stack.promising([key_of(1)]) == 1


def test_the_medium_gets_it_when_nothing_more_comes(clock: ManualClock, tmp_path: Path) -> None:
    synced = Event()

    class Watched(DiskStore):
        def sync(self) -> None:
            super().sync()
            synced.set()

    stack = TierStack(
        [GuardedStore(Watched(tmp_path / "tier", 1_000_000, SCOPE, clock), clock)], storage(), clock
    )
    store(stack, [1])
    assert synced.wait(30)
    stack.close(10)


def test_a_full_queue_drops(build: Build, clock: ManualClock) -> None:
    gate = Gated(ram_of(100, clock))
    stack = build(gate, limits=StackLimits(queued_bytes=3 * BLOCK))
    assert store(stack, range(5)) == [True, True, True, False, False]
    assert not stack.has_room
    assert stack.dropped == 2
    assert not stack.promising([key_of(4)])
    assert not stack.flush(0.01)
    gate.may_go.set()
    assert stack.flush(30)
    assert stack.has_room
    assert store(stack, [4]) == [True]
    stack.flush(30)
    assert fetch(stack, range(5)) == [0, 1, 2]


def test_the_same_block_is_written_once(build: Build, clock: ManualClock, disk: DiskStore) -> None:
    gate = Gated(disk)
    stack = build(gate, limits=StackLimits(queued_bytes=2 * BLOCK))
    assert store(stack, [1, 1, 1, 2, 2, 3]) == [True, False, False, True, False, False]
    assert stack.dropped == 1
    gate.may_go.set()
    stack.flush(30)
    store(stack, [1])
    stack.flush(30)
    assert stack.stats()["disk"].written_records == 2


def test_redis_gets_a_block_once_in_a_while(
    build: Build, clock: ManualClock, redis_server: RedisServer
) -> None:
    empty(redis_server)
    stack = build(RedisStore(redis_server.url, 10_000_000, SCOPE, clock, timeout=30))
    for _ in range(3):
        store(stack, [1], HIT)
        stack.flush(30)
    assert stack.stats()["redis"].written_records == 1
    clock.advance(601)
    store(stack, [1], HIT)
    stack.flush(30)
    assert stack.stats()["redis"].written_records == 2
    assert store(stack, [2], BlockFacts()) == [False]


def damaged(number: int, **changes: object) -> Record:
    whole = storage().encode(key_of(number), TOKENS * number, TOKENS, block(number))
    values = {name: getattr(whole, name) for name in Record.__dataclass_fields__}
    return Record(**{**values, **changes})


@pytest.mark.parametrize(
    "change",
    [{"position": 7}, {"codec": "unknown"}, {"payload": b"x" * 9}, {"tokens": 5}],
    ids=lambda change: next(iter(change)),
)
def test_records_that_do_not_fit_end_the_run(
    build: Build, clock: ManualClock, change: dict[str, object]
) -> None:
    ram = ram_of(100, clock)
    for number in range(6):
        ram.put(damaged(number, **(change if number == 3 else {})))
    if "tokens" in change:
        # It begins where it should, but the next one does not begin where it ends.
        answer = Answer()
        build(ram).fetch([key_of(number) for number in range(6)], answer)
        assert len(answer.wait()) == 4
    else:
        assert fetch(build(ram), range(6)) == [0, 1, 2]


def test_another_scope_is_a_miss(build: Build, clock: ManualClock) -> None:
    ram = RamStore(1_000_000, OTHER_SCOPE, clock)
    ram.put(damaged(0, scope=OTHER_SCOPE))
    assert fetch(build(ram), [0]) == []


def test_records_of_other_codecs_are_read(clock: ManualClock) -> None:
    ram = ram_of(100, clock)
    old = Plain("old", b"o")
    payload = old.encode(block(1), TOKENS, TOKENS)
    ram.put(damaged(1, codec="old", payload=payload))
    for known, expected in (({"old": old}, [1]), ({}, [])):
        stack = TierStack([GuardedStore(ram, clock)], storage(**known), clock)
        assert fetch(stack, [1]) == expected


def test_a_run_is_bounded(build: Build, clock: ManualClock) -> None:
    ram = ram_of(100, clock)
    slow = FaultyStore(ram, lambda call: Fault.SLOW if call >= 100 else None, lambda: clock.advance(1.0))
    limits = StackLimits(run=RunLimits(most_bytes=2 * PIECE * BLOCK + 1, most_seconds=0.5))
    stack = build(slow, limits=limits)
    store(stack, range(40))
    stack.flush(30)
    assert fetch(stack, range(40)) == list(range(2 * PIECE))
    slow.calls = 100
    assert fetch(stack, range(40)) == list(range(PIECE))


def test_too_many_fetches_bring_nothing(build: Build, clock: ManualClock) -> None:
    ram = ram_of(10, clock)
    ram.put(damaged(0))
    gate = Gated(ram)
    stack = build(gate, limits=StackLimits(fetches=2))
    answers = [Answer() for _ in range(5)]
    stack.fetch([key_of(0)], answers[0])
    assert gate.began.wait(30)
    for answer in answers[1:]:
        stack.fetch([key_of(0)], answer)
    gate.may_go.set()
    assert [len(answer.wait()) for answer in answers] == [1, 1, 0, 0, 0]
    assert {thread for answer in answers for thread in answer.threads} == {"tiers-reader"}


def test_what_is_wanted_no_longer_is_not_read(build: Build, clock: ManualClock) -> None:
    """Else a tier that is too slow would be busy for ever with what nobody waits for."""
    ram = ram_of(10, clock)
    for number in range(3):
        ram.put(damaged(number))
    gate = Gated(ram)
    stack = build(gate)
    answers, wanted = [Answer() for _ in range(3)], [True] * 3
    for number, answer in enumerate(answers):
        stack.fetch([key_of(number)], answer, lambda number=number: wanted[number])  # type: ignore[misc]
    assert gate.began.wait(30)
    wanted[1] = False
    gate.may_go.set()
    assert [len(answer.wait()) for answer in answers] == [1, 0, 1]
    assert stack.stats()["ram"].hits == 2


def test_a_caller_that_fails_stops_nobody(clock: ManualClock) -> None:
    stack = TierStack([GuardedStore(ram_of(10, clock), clock)], storage(), clock)

    def fails(run: object) -> None:
        raise ZeroDivisionError

    stack.fetch([key_of(1)], fails)
    store(stack, [1])
    stack.flush(30)
    assert fetch(stack, [1]) == [1]
    assert stack.failed == 1
    stack.close(10)


def test_what_ram_has_is_saved_at_the_end(build: Build, clock: ManualClock, tmp_path: Path) -> None:
    def opened() -> DiskStore:
        return DiskStore(tmp_path / "tier", 10_000_000, SCOPE, clock)

    stack = build(ram_of(100, clock), opened())
    store(stack, range(30))
    stack.close(10)
    assert store(stack, [40]) == [False]
    disk = opened()
    assert present(disk, range(50)) == list(range(30))
    stack = build(ram_of(100, clock), disk)
    assert fetch(stack, range(30)) == list(range(30))


def test_fetches_at_the_end_bring_nothing(clock: ManualClock) -> None:
    gate = Gated(ram_of(10, clock))
    stack = TierStack([GuardedStore(gate, clock)], storage(), clock)
    gate.may_go.set()
    store(stack, [0])
    stack.flush(30)
    gate.began.clear()
    gate.may_go.clear()
    answers = [Answer() for _ in range(3)]
    for answer in answers:
        stack.fetch([key_of(0)], answer)
    assert gate.began.wait(30)
    stack._reader.stop()
    stack._reader.cancel_waiting()
    gate.may_go.set()
    assert [len(answer.wait()) for answer in answers] == [1, 0, 0]
    stack.close(10)
    late = Answer()
    stack.fetch([key_of(0)], late)
    assert late.wait() == []


def test_a_tier_that_hangs_does_not_hold_up_the_end(clock: ManualClock) -> None:
    gate = Gated(ram_of(10, clock))
    stack = TierStack([GuardedStore(gate, clock)], storage(), clock)
    store(stack, range(3))
    assert gate.began.wait(30)
    stack.close(0.05)
    gate.may_go.set()
    assert stack._writer.join(30)
    assert stack.dropped == 2
    assert present(gate, range(3)) == [0]


def test_with_redis_down_only_indexes_promise(build: Build, clock: ManualClock) -> None:
    down = RedisStore("unix:///nowhere/redis.sock", 1_000_000, SCOPE, clock)
    stack = build(ram_of(10, clock), down)
    store(stack, [0, 1], HIT)
    stack.flush(30)
    keys = [key_of(number) for number in range(4)]
    assert stack.promising(keys) == 4
    assert fetch(stack, range(4)) == [0, 1]
    assert stack.stats()["redis"].is_open
    skipped = stack.stats()["redis"].skipped
    assert stack.promising(keys) == 2
    assert stack.stats()["redis"].skipped == skipped  # not even asked
    clock.advance(60)
    assert stack.promising(keys) == 4


def test_no_tiers(build: Build) -> None:
    stack = build()
    assert store(stack, [1], HIT) == [False]
    assert fetch(stack, [1]) == []
    assert stack.promising([key_of(1)]) == 0
    assert stack.stats() == {}
