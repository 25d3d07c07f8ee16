"""The thread that stores rows: nothing waits for it, nothing is lost silently, nothing counts twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from hotprefix.ledger.columns import Value
from hotprefix.ledger.errors import LedgerError, RowRefused
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.query import totals
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.sqlite import SqliteStore
from tests.ledger.rows import row


class GatedStore(SqliteStore):
    """A real store whose writes wait for a gate, or fail while `trouble` is set."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.gate = threading.Event()
        self.gate.set()
        self.arrived = threading.Event()
        self.trouble: Exception | None = None
        self.batches: list[int] = []

    def append(self, rows: Sequence[LedgerRow]) -> None:
        self.arrived.set()
        assert self.gate.wait(30)
        if self.trouble is not None:
            raise self.trouble
        super().append(rows)
        self.batches.append(len(rows))

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]:
        return super().query(sql, parameters)


@pytest.fixture
def store(tmp_path: Path) -> GatedStore:
    return GatedStore(tmp_path / "ledger.sqlite3")


def test_what_was_flushed_is_stored(store: GatedStore) -> None:
    with closing(Ledger(store)) as ledger:
        for number in range(2500):
            ledger.record(row(number))
        ledger.flush()
        assert totals(store)[0].requests == 2500


def test_flushing_nothing_returns_at_once(store: GatedStore) -> None:
    with closing(Ledger(store)) as ledger:
        ledger.flush(timeout=0)


def test_closing_stores_what_waits(store: GatedStore, tmp_path: Path) -> None:
    store.gate.clear()
    ledger = Ledger(store)
    for number in range(10):
        ledger.record(row(number))
    store.gate.set()
    ledger.close()
    with closing(SqliteStore(tmp_path / "ledger.sqlite3")) as again:
        assert totals(again)[0].requests == 10


def test_recording_never_waits_for_the_store_and_batches_what_came_meanwhile(store: GatedStore) -> None:
    store.gate.clear()
    with closing(Ledger(store)) as ledger:
        ledger.record(row(0))
        assert store.arrived.wait(30)
        for number in range(1, 501):
            ledger.record(row(number))  # returns although nothing can be stored
        store.gate.set()
        ledger.flush()
        assert store.batches == [1, 500]


def test_a_full_line_drops_counts_and_complains_once(store: GatedStore) -> None:
    store.gate.clear()
    told: list[str] = []
    with closing(Ledger(store, limit=3, complain=told.append)) as ledger:
        for number in range(5):
            ledger.record(row(number))
        lost = ledger.record_durably(row(5))
        assert isinstance(lost.exception(timeout=0), LedgerError)
        assert ledger.dropped == 3
        assert len(told) == 1 and "req-3 is not in the ledger" in told[0]
        store.gate.set()
        ledger.flush()
        assert totals(store)[0].requests == 3


def test_a_durable_row_is_stored_when_its_future_is_done(store: GatedStore) -> None:
    store.gate.clear()
    with closing(Ledger(store)) as ledger:
        stored = ledger.record_durably(row(0))
        assert not stored.done()
        assert not stored.cancel(), "a client that gives up does not undo what it used"
        store.gate.set()
        assert stored.result(timeout=30) is None
        assert totals(store)[0].requests == 1


def test_a_refused_row_does_not_hold_up_the_others(store: GatedStore) -> None:
    told: list[str] = []
    store.gate.clear()
    with closing(Ledger(store, complain=told.append)) as ledger:
        ledger.record(row(0))
        assert store.arrived.wait(30)
        ledger.record(row(1))
        refused = ledger.record_durably(row(2, at=float("inf")))
        ledger.record(row(3))
        store.gate.set()
        ledger.flush()
        assert isinstance(refused.exception(timeout=0), RowRefused)
        assert totals(store)[0].requests == 3
        assert ledger.dropped == 1
        assert len(told) == 1 and "req-2" in told[0]


@pytest.mark.parametrize("trouble", [LedgerError("disk full."), RuntimeError("a bug")])
def test_while_the_store_fails_rows_wait_and_are_stored_later(store: GatedStore, trouble: Exception) -> None:
    told: list[str] = []
    store.trouble = trouble
    with closing(Ledger(store, retry_seconds=0.01, complain=told.append)) as ledger:
        stored = ledger.record_durably(row(0))
        with pytest.raises(LedgerError, match=r"1 requests are not in the ledger: .*(disk full|a bug)"):
            ledger.flush()
        assert not stored.done()
        store.trouble = None
        assert stored.result(timeout=30) is None
        assert totals(store)[0].requests == 1
    assert len(told) == 1 and "tried again" in told[0]


def test_closing_while_the_store_fails_says_what_is_lost(store: GatedStore) -> None:
    store.trouble = LedgerError("disk full.")
    ledger = Ledger(store)
    ledger.record(row(0))
    stored = ledger.record_durably(row(1))
    with pytest.raises(LedgerError, match="2 requests are not in the ledger: disk full"):
        ledger.close()
    assert isinstance(stored.exception(timeout=0), LedgerError)
    ledger.record(row(2))
    assert ledger.dropped == 1


def test_many_threads_may_record(store: GatedStore) -> None:
    with closing(Ledger(store)) as ledger:
        threads = [
            threading.Thread(target=lambda base=base: [ledger.record(row(base + n)) for n in range(200)])
            for base in range(0, 1600, 200)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ledger.flush()
        assert totals(store)[0].requests == 1600
