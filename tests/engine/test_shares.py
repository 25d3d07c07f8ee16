"""Shares that change while the engine runs, and what its gauges say of them."""

from __future__ import annotations

from random import Random

import pytest

from hotprefix.base.errors import LogicError
from hotprefix.cache.prefix import PrefixCache
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.shares import floor_reserve
from hotprefix.kv.accounts import QuotaMode
from hotprefix.tenants.quota import TenantQuota
from tests.engine.fake_model import letters
from tests.engine.test_engine import PROMPT, collect, request, run, running
from tests.engine.worlds import LOWER, World

LONG = letters("the rules of the house are long and nobody reads them")


def flood(world: World, tenant: str = "flood", count: int = 40) -> None:
    random = Random(7)
    for _ in range(count):
        world.ask(random.choices(LOWER, k=40), 1, tenant=tenant)


def reused(world: World, tenant: str) -> int:
    return world.ask(LONG, 1, tenant=tenant).usage().cached_tokens


def test_a_floor_that_is_set_later_protects_what_is_cached_already() -> None:
    world = World(64, reserve=20)
    world.ask(LONG, 1, tenant="acme")
    assert world.stepper.grant([TenantQuota("acme", floor_tokens=60)]) == ()
    flood(world)
    assert reused(world, "acme") >= len(LONG) - 2
    world.stepper.grant([])
    flood(world)
    assert reused(world, "acme") == 0


def test_floors_beyond_the_reserve_are_cut_and_told() -> None:
    world = World(64, reserve=10)
    quotas = [TenantQuota("a", floor_tokens=32), TenantQuota("b", floor_tokens=32)]
    assert world.stepper.grant(quotas) == ("b",)
    assert world.stepper.grant(quotas[1:]) == ()


def test_gauges_tell_every_block_once_and_the_tenants_with_a_share() -> None:
    world = World(64, reserve=10)
    world.stepper.grant(
        [
            TenantQuota("acme", ceiling_tokens=16, mode=QuotaMode.REJECT),
            TenantQuota("idle", floor_tokens=4),
            TenantQuota("paced"),
        ]
    )
    world.ask(LONG, 1, tenant="acme")
    world.ask(LONG, 1, tenant="other")
    assert world.stepper.pin("kept", "other", LONG[:8]) == 8
    running = world.submit("a question", 30, tenant="other")
    world.step(3)
    world.stepper.flush_gauges()
    gauges = world.observer.last
    assert gauges is not None and not running.ended
    assert gauges.blocks["pinned"] == 2
    assert gauges.blocks["in_use"] >= 3
    assert sum(gauges.blocks.values()) == 64
    assert gauges.tenant_blocks == {"acme": 4, "idle": 0}
    assert gauges.not_kept["rejected"] > 0 == gauges.not_kept["capacity"]
    world.stepper.close()
    world.run()


def test_the_engine_grants_on_its_own_thread() -> None:
    world = World(64, reserve=20)
    with running(world) as engine:

        async def main() -> None:
            await collect(engine.stream(request(PROMPT)))
            assert await engine.grant([TenantQuota("a", floor_tokens=1000)]) == ("a",)
            assert isinstance(world.cache, PrefixCache)
            assert world.cache.tree.accounts.floors == 20

        run(main)


def test_a_question_that_fails_does_so_for_whoever_asks() -> None:
    world = World(64, reserve=20)
    with running(world) as engine:

        async def main() -> None:
            assert isinstance(world.cache, PrefixCache)
            world.cache.quotas = None
            with pytest.raises(LogicError, match="no quotas"):
                await engine.grant([TenantQuota("a", floor_tokens=8)])
            await collect(engine.stream(request(PROMPT)))

        run(main)


def test_a_stopped_engine_and_one_without_a_cache_grant_nothing() -> None:
    with running(World(settings=EngineSettings(policy=None))) as engine:
        assert run(lambda: engine.grant([TenantQuota("a", floor_tokens=8)])) == ()
    assert run(lambda: engine.grant([TenantQuota("a", floor_tokens=8)])) == ()


@pytest.mark.parametrize(
    ("blocks", "context", "wanted", "reserve"),
    [
        (2000, 256, 0, 1000),
        (300, 256, 0, 44),
        (300, 256, 60, 60),
        (300, 256, 200, 150),
        (100, 256, 0, 0),
    ],
)
def test_the_reserve_leaves_room_for_a_context(blocks: int, context: int, wanted: int, reserve: int) -> None:
    assert floor_reserve(blocks, context, wanted) == reserve
