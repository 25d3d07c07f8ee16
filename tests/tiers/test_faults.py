"""Tiers that are killed, slow, full and corrupt while they are used: fewer blocks, never wrong ones."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import BlockStore
from hotprefix.tiers.breaker import BreakerRules
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.facts import BlockFacts, Reason
from hotprefix.tiers.faulty import Fault, FaultyStore
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.ram import RamStore
from hotprefix.tiers.redis import RedisStore
from hotprefix.tiers.stack import TierStack
from tests.tiers.conftest import RedisServer, empty
from tests.tiers.records import SCOPE
from tests.tiers.stacks import fetch, storage, store

NAMES = ("ram", "disk", "redis")
RULES = BreakerRules(failures=3, slow_seconds=0.5, pause_seconds=1.0, longest_pause=2.0)


class World:
    """Three tiers, one of which has a fault in two calls of three."""

    def __init__(self, clock: ManualClock, folder: Path, url: str, faulty: str, fault: Fault) -> None:
        stores: list[BlockStore] = [
            RamStore(60_000, SCOPE, clock),
            DiskStore(folder, 200_000, SCOPE, clock),
            RedisStore(url, 100_000, SCOPE, clock, timeout=30),
        ]
        self.is_faulty = True
        schedule: Callable[[int], Fault | None] = lambda call: fault if self.is_faulty and call % 3 else None  # noqa: E731
        tiers = [
            GuardedStore(
                FaultyStore(one, schedule, lambda: clock.advance(1)) if one.name == faulty else one,
                clock,
                RULES,
            )
            for one in stores
        ]
        self.stack = TierStack(tiers, storage(), clock)


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
@pytest.mark.parametrize("faulty", NAMES)
def test_a_faulty_tier(
    faulty: str, fault: Fault, clock: ManualClock, tmp_path: Path, redis_server: RedisServer
) -> None:
    empty(redis_server)
    world = World(clock, tmp_path / "tier", redis_server.url, faulty, fault)
    draw = random.Random(f"{faulty}{fault}")
    for _ in range(60):
        start = draw.randrange(40)
        reason = draw.choice((Reason.EVICTED, Reason.IDLE))
        store(world.stack, range(start, start + 8), BlockFacts(hits=draw.randrange(2), reason=reason))
        # `fetch` holds every block against what it has to be.
        fetch(world.stack, range(start, start + draw.randrange(1, 20)))
        clock.advance(0.5)
    world.is_faulty = False
    clock.advance(10)
    store(world.stack, range(100, 104), BlockFacts(hits=1))
    assert world.stack.flush(30)
    assert fetch(world.stack, range(100, 104)) == [100, 101, 102, 103]
    world.stack.close(10)
    assert world.stack.failed == 0


def test_redis_is_killed_under_load(clock: ManualClock, own_redis: RedisServer) -> None:
    stack = TierStack(
        [GuardedStore(RedisStore(own_redis.url, 1_000_000, SCOPE, clock, timeout=30), clock, RULES)],
        storage(),
        clock,
    )
    hit = BlockFacts(hits=1)
    store(stack, range(20), hit)
    assert stack.flush(30)
    assert fetch(stack, range(20)) == list(range(20))
    own_redis.stop()
    for _ in range(4):
        assert fetch(stack, range(20)) == []
    own_redis.start()
    clock.advance(700)
    for numbers in ([0], range(20)):  # one call decides whether it is back; meanwhile it gets no others
        store(stack, numbers, hit)
        assert stack.flush(30)
    assert fetch(stack, range(20)) == list(range(20))
    stack.close(10)
