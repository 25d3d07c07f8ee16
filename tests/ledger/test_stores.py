"""What every store promises."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from hotprefix.diagnosis.reason import Divergence
from hotprefix.ledger import columns, schema
from hotprefix.ledger.columns import COLUMNS, values
from hotprefix.ledger.errors import LedgerError, RowRefused
from hotprefix.ledger.query import totals
from hotprefix.ledger.sqlite import SqliteStore
from hotprefix.ledger.store import LedgerStore, open_store
from hotprefix.modes.classes import Mode, TokenClasses
from tests.ledger.rows import REPORT, ROW, row

ALL = f"SELECT {', '.join(COLUMNS)} FROM ledger_request ORDER BY request_id"


def test_a_row_comes_back_as_it_was_stored(store: LedgerStore) -> None:
    store.append([ROW])
    (found,) = store.query(ALL)
    assert found == values(ROW)
    kept = dict(zip(COLUMNS, found, strict=True))
    assert (kept["prompt"], kept["written"], kept["money_pico"]) == (100, 50, 75_200_000)
    assert json.loads(kept["written_by_ttl"]) == {"5m": 50}
    assert json.loads(kept["divergence"])["path"] == "messages[0].content"
    assert (kept["day"], kept["advice_zh"]) == ("2026-03-24", "把时间移到固定文本之后。")


def test_a_request_counts_once_and_the_first_row_stays(store: LedgerStore) -> None:
    store.append([ROW, ROW])
    store.append([replace(ROW, tenant="other"), row(1)])
    assert [kept[0] for kept in store.query("SELECT tenant FROM ledger_request ORDER BY request_id")] == [
        "acme",
        "acme",
    ]


def test_rows_are_there_when_the_ledger_is_opened_again(place: Path | str) -> None:
    for number in (1, 2):
        store = open_store(place)
        store.append([row(number)])
        store.close()
    store = open_store(place)
    assert totals(store)[0].requests == 2
    store.close()


def test_the_database_itself_refuses_a_token_in_two_classes(
    store: LedgerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(columns._READERS, "computed", lambda row: row.classes.prompt)
    with pytest.raises(RowRefused, match="every_token_in_one_class"):
        store.append([ROW])
    assert totals(store) == []


def test_a_refused_row_takes_its_batch_with_it(store: LedgerStore) -> None:
    with pytest.raises(RowRefused):
        store.append([row(1), row(2, money=Decimal(-1))])
    assert totals(store) == []
    store.append([row(1)])
    assert totals(store)[0].requests == 1


@pytest.mark.parametrize(
    "bad",
    [
        row(1, at=float("nan")),
        row(1, at=float("inf")),
        row(1, money=Decimal("NaN")),
        row(1, money=Decimal(10**8)),
        row(1, classes=TokenClasses(Mode.NONE, 2**63, 0)),
    ],
)
def test_numbers_out_of_range_are_refused(store: LedgerStore, bad: object) -> None:
    with pytest.raises(RowRefused):
        store.append([bad])  # type: ignore[list-item]


def test_any_text_can_be_stored(store: LedgerStore) -> None:
    odd = "nul \0 half \ud800 quote ' ? %s 'x' 中文 \U0001f600"
    divergence = Divergence(odd, 0, 0, odd, odd)
    store.append([row(1, scene=odd, report=replace(REPORT, detail=odd, divergence=divergence))])
    ((scene, detail),) = store.query("SELECT scene, detail FROM ledger_request")
    assert scene == detail == "nul \N{REPLACEMENT CHARACTER} half ? quote ' ? %s 'x' 中文 \U0001f600"


def test_a_ledger_of_the_first_version_is_renewed_with_its_rows(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = schema.MIGRATIONS
    for module in ("schema", "sqlite", "postgres"):
        monkeypatch.setattr(f"hotprefix.ledger.{module}.MIGRATIONS", newest[:1])
    old = open_store(place)
    old.append([ROW])
    old.close()
    monkeypatch.undo()
    renewed = open_store(place)
    assert list(renewed.query("SELECT version FROM ledger_version")) == [(len(newest),)]
    assert totals(renewed)[0].requests == 1
    renewed.close()


def test_a_ledger_of_a_newer_version_is_left_alone(
    place: Path | str, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(place).close()
    for module in ("schema", "sqlite", "postgres"):
        monkeypatch.setattr(f"hotprefix.ledger.{module}.MIGRATIONS", ())
    with pytest.raises(LedgerError, match="written by a newer Hotprefix"):
        open_store(place)


def test_stores_opened_at_once_agree_on_the_tables(place: Path | str) -> None:
    together = threading.Barrier(6)
    errors: list[BaseException] = []

    def open_and_write(number: int) -> None:
        try:
            together.wait()
            mine = open_store(place)
            mine.append([row(number), row(99)])
            mine.close()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=open_and_write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    store = open_store(place)
    assert totals(store)[0].requests == 7
    store.close()


def test_a_file_that_is_no_ledger_is_told(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite3"
    file.write_bytes(b"something else entirely" * 100)
    with pytest.raises(LedgerError, match=r"ledger.sqlite3 can't be used: file is not a database"):
        SqliteStore(file)


def test_the_file_is_for_its_owner_only(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "ledger.sqlite3").close()
    assert stat.S_IMODE((tmp_path / "ledger.sqlite3").stat().st_mode) == 0o600


def test_a_locked_file_can_still_be_read(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "ledger.sqlite3")
    store.append([ROW])
    other = sqlite3.connect(tmp_path / "ledger.sqlite3", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert totals(store)[0].requests == 1
    other.close()
    store.close()


def test_other_urls_are_refused_without_showing_them() -> None:
    with pytest.raises(LedgerError, match=r"mysql://…") as caught:
        open_store("mysql://me:secret@host/db")
    assert "secret" not in str(caught.value)


def test_an_unreachable_server_is_told_without_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(LedgerError, match="can't be used") as caught:
        open_store(f"postgresql://me:secret@/db?host={tmp_path}")
    assert "secret" not in str(caught.value)


def test_a_lost_connection_is_made_anew(postgres_url: str) -> None:
    import psycopg

    store = open_store(postgres_url)
    store.append([row(1)])
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
    with pytest.raises(LedgerError, match="can't be used"):
        store.append([row(2)])
    store.append([row(2)])
    assert totals(store)[0].requests == 2
    store.close()


def test_without_psycopg_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from hotprefix.base.errors import MissingExtra

    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"hotprefix\[postgres\]"):
        open_store("postgresql://host/db")
