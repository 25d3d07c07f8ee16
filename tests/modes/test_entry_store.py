"""Entries that outlive the process: what is written down, what is read again, and what a restart can lose."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.base.ids import BlockKey
from hotprefix.modes.caching import Caching
from hotprefix.modes.entries import Entry, EntryBook
from hotprefix.modes.entry_store import ENTRIES_FILE, SqliteEntries
from hotprefix.modes.state_file import BrokenCacheStore
from tests.modes.worlds import BLOCK, World, prompt

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / ENTRIES_FILE


def entry(name: str, expires: float, ttl: float = 300.0) -> Entry:
    return Entry(BlockKey(name.encode().ljust(32, b"\0")), "tenant", 1100, ttl, expires, f"pin-{name}", name)


def read(file: Path, now: float, wall: float) -> dict[str, Entry]:
    clock = ManualClock(now, wall)
    with closing(SqliteEntries(file, clock)) as store:
        return {one.name: one for one in store.load()}


def test_what_lives_is_found_by_the_next_process_in_its_own_time(file: Path) -> None:
    clock = ManualClock(1000.0, 50_000.0)
    with closing(SqliteEntries(file, clock)) as store:
        book = EntryBook(10, store)
        for one in (entry("short", 1100.0), entry("long", 1300.0), entry("dropped", 1300.0)):
            book.add(one)
        book.drop(next(one for one in book if one.name == "dropped"), "evicted")
    found = read(file, now=7.0, wall=50_150.0)
    assert list(found) == ["long"]
    assert found["long"].expires == pytest.approx(7.0 + 150.0)
    assert (found["long"].pin, found["long"].tokens, found["long"].tenant) == ("", 1100, "tenant")
    assert list(read(file, 7.0, 50_301.0)) == []


def test_a_hit_is_written_down_once_it_is_worth_it(file: Path) -> None:
    clock = ManualClock(1000.0, 50_000.0)
    with closing(SqliteEntries(file, clock)) as store:
        book, one = EntryBook(10, store), entry("one", 1300.0)
        book.add(one)
        clock.advance(10)
        book.renew(one, clock.now())
        assert read(file, 0.0, clock.wall())["one"].expires == pytest.approx(290.0)
        clock.advance(80)
        book.renew(one, clock.now())
        assert read(file, 0.0, clock.wall())["one"].expires == pytest.approx(300.0)


def test_the_limit_is_the_files_as_well(file: Path) -> None:
    clock = ManualClock(1000.0, 50_000.0)
    with closing(SqliteEntries(file, clock)) as store:
        book = EntryBook(2, store)
        for number in range(5):
            book.add(entry(str(number), 1300.0 + number))
    assert sorted(read(file, 0.0, 50_000.0)) == ["3", "4"]


async def test_a_restored_entry_is_held_again_when_it_is_hit(file: Path) -> None:
    before = World()
    with closing(SqliteEntries(file, before.clock)) as store:
        before.caching = Caching(EntryBook(10, store), before.pins, before.clock, BLOCK)
        assert (await before.ask(prompt(("s", 1100), ("q", 40)), 0)).write_total == 1100
    after = World()
    with closing(SqliteEntries(file, after.clock)) as store:
        book = EntryBook(10, store)
        for one in store.load():
            book.add(one)
        after.caching = Caching(book, after.pins, after.clock, BLOCK)
        assert after.pins.held == {}
        classes = await after.ask(prompt(("s", 1100), ("other", 40)), 0)
        assert (classes.read, classes.write_total) == (1100, 0)
        assert list(after.pins.held.values()) == [1100]


def test_no_entry_lives_longer_than_its_lifetime_because_a_clock_was_wrong(file: Path) -> None:
    with closing(SqliteEntries(file, ManualClock(0.0, 4e9))) as store:
        EntryBook(10, store).add(entry("one", 300.0))
    assert read(file, now=7.0, wall=50_000.0)["one"].expires == pytest.approx(307.0)


async def test_a_file_that_can_not_be_written_any_more_fails_no_request(file: Path) -> None:
    """A full disk: entries live in memory, somebody is told once, and writing goes on when there is room."""
    world, told = World(), list[str]()
    with closing(SqliteEntries(file, world.clock, told.append)) as store:
        world.caching = Caching(EntryBook(10, store), world.pins, world.clock, BLOCK)
        await world.ask(prompt(("first", 1100), ("q", 40)), 0)
        store._file.run("PRAGMA query_only = 1")
        assert (await world.ask(prompt(("s", 1100), ("q", 40)), 0)).write_total == 1100
        world.clock.advance(200)
        assert (await world.ask(prompt(("s", 1100), ("x", 40)), 0)).read == 1100
        world.clock.advance(200)
        world.caching.sweep()
        assert [one.tokens for one in world.caching.book] == [1100]
        assert len(world.pins.held) == 1
        assert len(told) == 1
        assert "readonly" in told[0]
        store._file.run("PRAGMA query_only = 0")
        assert (await world.ask(prompt(("s", 1100), ("y", 40)), 0)).read == 1100
        assert len(read(file, world.clock.now(), world.clock.wall())) == 1


def _damage(file: Path) -> None:
    file.write_bytes(b"no database at all" * 100)


def _age(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 99")


@pytest.mark.parametrize("spoil", [_damage, _age])
def test_a_file_that_can_not_be_used_is_named(file: Path, spoil: Callable[[Path], None]) -> None:
    clock = ManualClock(0.0, 0.0)
    SqliteEntries(file, clock).close()
    spoil(file)
    with pytest.raises(BrokenCacheStore, match=ENTRIES_FILE):
        SqliteEntries(file, clock)
