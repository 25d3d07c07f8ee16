"""Named caches: bounded, timed by the clock, and told from those of another model after a restart."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.base.errors import InvalidRequest, ModelError
from hotprefix.base.ids import BlockKey
from hotprefix.modes.errors import CacheLimitReached, CacheNotFound
from hotprefix.modes.named import Kept, NamedCaches, Render
from hotprefix.modes.named_cache import CacheState, Definition, NamedLimits
from hotprefix.modes.named_store import MemoryStore, NamedStore, SqliteNamedStore
from hotprefix.modes.state_file import BrokenCacheStore

DOCUMENT = {"text": "Rules."}
LIMITS = NamedLimits(caches=3, per_tenant=2, tokens_per_tenant=100, longest_ttl=1000)


class Arena:
    """Holds what was computed, as long as it has room."""

    def __init__(self) -> None:
        self.computed: list[tuple[str, tuple[int, ...]]] = []
        self.pins: dict[str, tuple[int, ...]] = {}
        self.is_full = False

    def root_for(self, tenant: str) -> BlockKey:
        return BlockKey(tenant.encode())

    async def pin(self, name: str, tenant: str, token_ids: Sequence[int]) -> int:
        if self.is_full or (tenant, tuple(token_ids)) not in self.computed:
            return 0
        self.pins[name] = tuple(token_ids)
        return len(token_ids)

    def unpin(self, name: str) -> None:
        self.pins.pop(name, None)

    async def prefill(self, tenant: str, token_ids: Sequence[int]) -> int:
        known = (tenant, tuple(token_ids)) in self.computed
        self.computed.append((tenant, tuple(token_ids)))
        return len(token_ids) if known else 3


class World:
    def __init__(self, store: NamedStore | None = None, identity: str = "model/kv") -> None:
        self.arena = Arena()
        self.clock = ManualClock(1_000_000.0)
        self.store = store or MemoryStore()
        self.named = NamedCaches(
            self.store, self.arena, self.arena.prefill, self.clock, identity, limits=LIMITS
        )

    def put(
        self,
        name: str = "shop",
        ids: Sequence[int] = range(10),
        ttl: float | None = 60.0,
        tenant: str = "a",
    ) -> Kept:
        return asyncio.run(self.named.put(tenant, name, DOCUMENT, tuple(ids), ttl))


def test_a_cache_is_computed_and_pinned_once() -> None:
    world = World()
    kept = world.put()
    assert (kept.computed, kept.known, kept.cache.state) == (7, 3, CacheState.WARM)
    again = world.put()
    assert (again.computed, again.known) == (0, 10)
    assert list(world.arena.pins.values()) == [tuple(range(10))]
    assert again.cache.definition.created == kept.cache.definition.created
    assert world.named.of("a") == [again.cache]


def test_only_its_tenant_sees_it() -> None:
    world = World()
    world.put()
    assert world.named.of("b") == []
    with pytest.raises(CacheNotFound):
        world.named.get("b", "shop")
    with pytest.raises(CacheNotFound):
        world.named.delete("b", "shop")
    world.put(tenant="b", ids=range(5))
    assert world.named.get("a", "shop").definition.tokens == 10


def test_it_expires_by_the_clock_and_a_hit_starts_it_anew() -> None:
    world = World()
    cache = world.put().cache
    world.clock.advance(59)
    world.named.hit(cache)
    world.clock.advance(59)
    assert world.named.get("a", "shop").hits == 1
    world.clock.advance(1)
    with pytest.raises(CacheNotFound):
        world.named.get("a", "shop")
    assert world.arena.pins == {}


def test_pinned_it_never_expires_until_it_is_unpinned() -> None:
    world = World()
    cache = world.put(ttl=None).cache
    world.clock.advance(10**9)
    assert world.named.get("a", "shop") is cache
    world.named.set_ttl(cache, 10)
    world.clock.advance(10)
    assert world.named.of("a") == []
    assert world.arena.pins == {}


@pytest.mark.parametrize("ttl", [0.0, 0.5, 1001.0])
def test_a_ttl_has_bounds(ttl: float) -> None:
    world = World()
    with pytest.raises(InvalidRequest, match="from 1 to 1000"):
        world.put(ttl=ttl)
    assert world.arena.computed == []


def test_numbers_are_bounded() -> None:
    world = World()
    world.put("one")
    world.put("two")
    with pytest.raises(CacheLimitReached, match="2 may be"):
        world.put("three")
    world.put("two", ids=range(20))  # in place of itself it always may
    world.put("one", tenant="b")
    with pytest.raises(CacheLimitReached, match="may hold 3 named caches, those of all clients"):
        world.put("two", tenant="c")
    assert len(world.named) == 3


def test_tokens_are_bounded() -> None:
    world = World()
    world.put("one", ids=range(60))
    with pytest.raises(CacheLimitReached, match="hold 60 tokens and this prefix has 41; at most 100"):
        world.put("two", ids=range(41))
    world.put("two", ids=range(40))


def test_without_room_in_the_arena_nothing_is_kept() -> None:
    world = World()
    world.arena.is_full = True
    with pytest.raises(CacheLimitReached, match="--kv-arena"):
        world.put()
    assert len(world.named) == 0


def test_two_at_once_can_t_pass_the_limit_together() -> None:
    world = World()

    async def both() -> list[object]:
        puts = [world.named.put("a", name, DOCUMENT, range(60), 60.0) for name in ("one", "two")]
        return await asyncio.gather(*puts, return_exceptions=True)

    results = asyncio.run(both())
    assert sum(isinstance(result, CacheLimitReached) for result in results) == 1
    assert len(world.arena.pins) == len(world.named) == 1


def test_a_pin_that_was_taken_is_noticed_and_computed_again() -> None:
    world = World()
    cache = world.put().cache
    world.arena.pins.clear()
    world.arena.computed.clear()
    assert not asyncio.run(world.named.verify(cache))
    assert cache.state is CacheState.STALE
    assert "a request that had no other room" in cache.note
    assert asyncio.run(world.named.restore(cache, render_as(range(10))))
    assert (cache.state, cache.note) == (CacheState.WARM, "")


def render_as(ids: Sequence[int]) -> Render:
    async def render(_: Definition) -> Sequence[int]:
        return ids

    return render


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "caches.sqlite3"


def test_definitions_outlive_a_restart(file: Path) -> None:
    first = World(SqliteNamedStore(file))
    first.put(ttl=500)
    first.put("for-good", ids=range(3), ttl=None)
    first.put("gone", tenant="b", ttl=50)
    first.store.close()
    assert file.stat().st_mode & 0o077 == 0

    second = World(SqliteNamedStore(file))
    second.clock.advance(100)
    waiting = second.named.to_restore()
    assert [(c.definition.name, c.state, c.note) for c in waiting] == [
        ("for-good", CacheState.STALE, ""),
        ("shop", CacheState.STALE, ""),
    ]
    assert waiting[1].definition.document == DOCUMENT
    for cache in waiting:
        assert asyncio.run(second.named.restore(cache, render_as(range(cache.definition.tokens))))
        assert (cache.state, cache.note) == (CacheState.WARM, "")
    assert second.named.to_restore() == []
    # The lifetime went on in between.
    second.clock.advance(399)
    assert len(second.named.of("a")) == 2
    second.clock.advance(1)
    assert [cache.definition.name for cache in second.named.of("a")] == ["for-good"]


def test_another_model_has_it_computed_again(file: Path) -> None:
    first = World(SqliteNamedStore(file))
    first.put(ttl=None)
    first.store.close()
    second = World(SqliteNamedStore(file), identity="model/other-kv")
    (cache,) = second.named.to_restore()
    assert asyncio.run(second.named.restore(cache, render_as(range(12))))
    assert (cache.definition.tokens, cache.definition.identity) == (12, "model/other-kv")
    assert "have changed" in cache.note
    second.store.close()
    assert SqliteNamedStore(file).load()[0].identity == "model/other-kv"


def test_what_can_t_be_computed_any_more_is_stale_and_says_why(file: Path) -> None:
    first = World(SqliteNamedStore(file))
    first.put(ttl=None)
    first.store.close()
    second = World(SqliteNamedStore(file), identity="smaller/kv")
    (cache,) = second.named.to_restore()

    async def too_long(_: Definition) -> Sequence[int]:
        raise ModelError("The prompt has 10 tokens; at most 5 fit.")

    assert not asyncio.run(second.named.restore(cache, too_long))
    assert (cache.state, cache.note) == (CacheState.STALE, "The prompt has 10 tokens; at most 5 fit.")
    assert cache.definition.identity == "model/kv"
    assert second.arena.pins == {}


def test_hits_are_written_down_now_and_then(file: Path) -> None:
    store = SqliteNamedStore(file)
    world = World(store)
    cache = world.put(ttl=100).cache

    def stored() -> float | None:
        return store.load()[0].expires

    begin = stored()
    for _ in range(6):
        world.clock.advance(4)
        world.named.hit(cache)
    assert stored() == begin
    world.clock.advance(1)
    world.named.hit(cache)
    assert stored() == 1_000_000 + 25 + 100


def test_a_file_that_can_not_be_written_any_more_fails_no_request(file: Path) -> None:
    """A full disk: hits count, what has expired goes, and who asks for a change is told."""
    store = SqliteNamedStore(file)
    world = World(store)
    cache = world.put(ttl=100).cache
    store._file.run("PRAGMA query_only = 1")
    world.clock.advance(90)
    world.named.hit(cache)
    world.clock.advance(90)
    assert world.named.of("a") == [cache]
    world.clock.advance(90)
    assert world.named.of("a") == []
    assert world.arena.pins == {}
    with pytest.raises(BrokenCacheStore, match="readonly"):
        world.put()


def test_deleted_is_gone_from_the_file(file: Path) -> None:
    world = World(SqliteNamedStore(file))
    world.put()
    world.named.delete("a", "shop")
    assert world.arena.pins == {}
    assert world.store.load() == []


def test_a_bad_file_is_told_in_one_sentence(file: Path) -> None:
    file.parent.mkdir()
    file.write_text("this is no database, and long enough to be seen as none" * 20)
    with pytest.raises(BrokenCacheStore, match=r"caches\.sqlite3 can't be used"):
        SqliteNamedStore(file)
    file.unlink()
    with sqlite3.connect(file) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(BrokenCacheStore, match="newer Hotprefix"):
        SqliteNamedStore(file)
