"""A ledger that can't store: requests are answered all the same, and booked once it can."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hotprefix.api import booking
from hotprefix.ledger.errors import LedgerError, RowRefused
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.query import totals
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.sqlite import SqliteStore
from tests.api.scripted_engine import ScriptedEngine
from tests.api.support import in_process, read_events

pytestmark = pytest.mark.anyio


class TroubledStore(SqliteStore):
    """A real store that fails, refuses or waits as long as it is told to."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.trouble: LedgerError | None = None
        self.may_go = Event()
        self.may_go.set()

    def append(self, rows: Sequence[LedgerRow]) -> None:
        assert self.may_go.wait(30)
        if self.trouble is not None:
            raise self.trouble
        super().append(rows)


async def answered(server: Any) -> None:
    async with asyncio.timeout(20):
        assert (await server.chat()).status_code == 200
        streamed = await server.chat(stream=True)
        assert read_events(streamed.text)[-1]["choices"][0]["finish_reason"] == "stop"


async def test_a_full_disk_under_the_ledger_ends_no_request(tmp_path: Path) -> None:
    told: list[str] = []
    store = TroubledStore(tmp_path / "ledger.sqlite3")
    ledger = Ledger(store, retry_seconds=0.05, complain=told.append)
    async with in_process(ScriptedEngine(), ledger=ledger) as server:
        store.trouble = LedgerError("The disk is full.")
        await answered(server)
        assert ledger.is_failing
        assert told == ["The disk is full. Rows wait and are tried again."]
        store.trouble = None
        await asyncio.to_thread(ledger.flush)
        assert not ledger.is_failing
        assert totals(store)[0].requests == 2
    ledger.close()


async def test_a_row_that_is_refused_ends_no_request(tmp_path: Path) -> None:
    store = TroubledStore(tmp_path / "ledger.sqlite3")
    ledger = Ledger(store)
    async with in_process(ScriptedEngine(), ledger=ledger) as server:
        store.trouble = RowRefused("No such row.")
        await answered(server)
    ledger.close()
    assert ledger.dropped == 2


async def test_nobody_waits_for_ever_for_a_ledger_that_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(booking, "_LOOK_SECONDS", 0.01)
    store = TroubledStore(tmp_path / "ledger.sqlite3")
    ledger = Ledger(store)
    async with in_process(ScriptedEngine(), ledger=ledger) as server:
        store.may_go.clear()
        await answered(server)
        store.may_go.set()
        await asyncio.to_thread(ledger.flush)
        assert totals(store)[0].requests == 2
    ledger.close()
