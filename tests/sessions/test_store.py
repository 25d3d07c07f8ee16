from __future__ import annotations

import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.sessions.errors import SessionStoreError
from hotprefix.sessions.limits import StoreLimits
from hotprefix.sessions.response import StoredResponse, Tombstone
from hotprefix.sessions.sessions import Sessions
from hotprefix.sessions.store import SESSION_FILE, ResponseStore
from tests.sessions.support import WEEK, turn

DAY = 86_400.0


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1_000_000.0)


@pytest.fixture
def store(tmp_path: Path, clock: ManualClock) -> Iterator[ResponseStore]:
    with closing(ResponseStore(tmp_path / SESSION_FILE, clock)) as store:
        yield store


def test_what_is_saved_comes_back(store: ResponseStore, clock: ManualClock) -> None:
    saved = store.save(turn("r1", answer="drawn\ud7ff", document={"id": "r1", "output": [], "text": "中文"}))
    assert saved.expires == clock.now() + WEEK
    assert saved.document["expires_at"] == int(clock.now() + WEEK)
    assert store.load("t", "r1") == saved


def test_another_tenants_id_and_a_random_one_are_answered_alike(store: ResponseStore) -> None:
    store.save(turn("r1", tenant="a"))
    for name in ("r1", "never"):
        assert store.load("b", name) is None
        assert store.chain("b", name).responses == ()
        assert store.chain("b", name).buried is None
        assert not store.delete("b", name)
    assert isinstance(store.load("a", "r1"), StoredResponse)


def test_look_ups_ask_the_same_of_the_file_for_foreign_random_and_expired_ids(
    store: ResponseStore, clock: ManualClock
) -> None:
    store.save(turn("r1", tenant="a"))
    asked: list[str] = []
    store._db.set_trace_callback(lambda sql: asked.append(sql.split("'")[0].split("WHERE")[0]))
    store.load("b", "r1")
    foreign, asked[:] = list(asked), []
    store.load("b", "random")
    assert foreign == asked
    assert sum("FROM response" in sql for sql in asked) == 1


def test_an_expired_one_is_known_to_its_owner_only(store: ResponseStore, clock: ManualClock) -> None:
    first = store.save(turn("r1"))
    store.save(turn("r2", previous=first))
    clock.advance(WEEK)
    gone = store.load("t", "r2")
    assert isinstance(gone, Tombstone)
    assert gone.depth == 2
    assert store.purge() == 2
    assert store.load("t", "r2") == gone
    assert store.chain("t", "r2").buried == gone
    assert store.load("other", "r2") is None
    assert store.count() == (0, 0)


def test_expiry_runs_from_the_last_use(store: ResponseStore, clock: ManualClock) -> None:
    first = store.save(turn("r1"))
    second = store.save(turn("r2", previous=first))
    clock.advance(6 * DAY)
    chain = store.chain("t", "r2")
    assert [one.response_id for one in chain.responses] == ["r1", "r2"]
    assert {one.expires for one in chain.responses} == {clock.now() + WEEK}
    clock.advance(6 * DAY)
    assert isinstance(store.load("t", second.response_id), StoredResponse)
    clock.advance(6 * DAY)
    assert isinstance(store.load("t", "r1"), Tombstone)
    assert store.chain("t", "r2").missing == "r1"
    assert store.chain("t", "r2").buried is not None


def test_a_chain_without_a_deleted_turn_is_broken(store: ResponseStore) -> None:
    first = store.save(turn("r1"))
    second = store.save(turn("r2", previous=first))
    store.save(turn("r3", previous=second))
    assert store.delete("t", "r2")
    assert not store.delete("t", "r2")
    chain = store.chain("t", "r3")
    assert (chain.responses, chain.missing, chain.buried) == ((), "r2", None)


def test_it_survives_being_closed(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "deep" / SESSION_FILE
    with closing(ResponseStore(path, clock)) as store:
        first = store.save(turn("r1"))
        store.save(turn("r2", previous=first))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(ResponseStore(path, clock)) as store:
        assert [one.response_id for one in store.chain("t", "r2").responses] == ["r1", "r2"]
        assert store.count("t")[0] == 2


def test_without_a_path_it_is_kept_in_memory(clock: ManualClock) -> None:
    with closing(ResponseStore(None, clock)) as store:
        store.save(turn("r1"))
        assert isinstance(store.load("t", "r1"), StoredResponse)


@pytest.mark.parametrize("limits", [StoreLimits(tenant_rows=3), StoreLimits(tenant_bytes=2400)])
def test_the_oldest_of_a_tenant_make_room(tmp_path: Path, clock: ManualClock, limits: StoreLimits) -> None:
    with closing(ResponseStore(tmp_path / SESSION_FILE, clock, limits)) as store:
        store.save(turn("other", tenant="quiet"))
        for number in range(6):
            clock.advance(1)
            store.save(turn(f"r{number}"))
            store.load("t", "r0")
        kept = [number for number in range(6) if isinstance(store.load("t", f"r{number}"), StoredResponse)]
        assert kept == [0, 4, 5]
        assert isinstance(store.load("t", "r1"), Tombstone)
        assert isinstance(store.load("quiet", "other"), StoredResponse)


def test_all_tenants_together_have_a_limit(tmp_path: Path, clock: ManualClock) -> None:
    limits = StoreLimits(total_bytes=3000)
    with closing(ResponseStore(tmp_path / SESSION_FILE, clock, limits)) as store:
        for number in range(20):
            clock.advance(1)
            store.save(turn("r", tenant=f"t{number}"))
        assert 1 <= store.count()[0] < 5
        assert store.count()[1] <= 3000
        assert isinstance(store.load("t19", "r"), StoredResponse)


def test_a_response_over_every_limit_is_kept_alone(tmp_path: Path, clock: ManualClock) -> None:
    with closing(ResponseStore(tmp_path / SESSION_FILE, clock, StoreLimits(tenant_bytes=10))) as store:
        store.save(turn("r1"))
        store.save(turn("r2"))
        assert isinstance(store.load("t", "r2"), StoredResponse)
        assert store.count()[0] == 1


def test_tombstones_are_bounded(tmp_path: Path, clock: ManualClock) -> None:
    with closing(ResponseStore(tmp_path / SESSION_FILE, clock, StoreLimits(tombstones=2))) as store:
        for number in range(4):
            clock.advance(1)
            store.save(turn(f"r{number}"))
        clock.advance(WEEK)
        assert store.purge() == 4
        known = [number for number in range(4) if store.load("t", f"r{number}") is not None]
        assert known == [2, 3]


def test_saving_clears_away_what_has_expired(store: ResponseStore, clock: ManualClock) -> None:
    store.save(turn("r1"))
    clock.advance(WEEK)
    store.save(turn("r2"))
    assert store.count()[0] == 1


def test_a_newer_version_is_refused(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / SESSION_FILE
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(SessionStoreError, match="version 99, written by a newer Hotprefix"):
        ResponseStore(path, clock)


@pytest.mark.parametrize("broken", ["garbage", "folder"])
def test_a_file_that_is_none_is_told(tmp_path: Path, clock: ManualClock, broken: str) -> None:
    path = tmp_path / SESSION_FILE
    if broken == "garbage":
        path.write_bytes(b"no database at all" * 100)
    else:
        path.mkdir()
    with pytest.raises(SessionStoreError, match="can't be used for stored responses"):
        ResponseStore(path, clock)


@pytest.mark.anyio
async def test_the_event_loop_never_touches_the_file(tmp_path: Path, clock: ManualClock) -> None:
    threads: set[str] = set()

    class Watched(ManualClock):
        def wall(self) -> float:
            threads.add(threading.current_thread().name)
            return super().wall()

    with closing(Sessions(tmp_path / SESSION_FILE, Watched())) as sessions:
        await sessions.save(turn("r1"))
        assert isinstance(await sessions.load("t", "r1"), StoredResponse)
        assert len((await sessions.chain("t", "r1")).responses) == 1
        assert await sessions.delete("t", "r1")
        assert await sessions.purge() == 0
    assert len(threads) == 1
    assert threads.pop().startswith("hotprefix-sessions")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
