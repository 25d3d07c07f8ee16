"""Exports hold every row, with real types, or do not appear at all."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest

from hotprefix.ledger import export as export_module
from hotprefix.ledger.errors import LedgerError
from hotprefix.ledger.export import export
from hotprefix.ledger.query import Span
from hotprefix.ledger.store import LedgerStore
from tests.ledger.rows import ROW, row


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_every_row_oldest_first_over_several_chunks(
    store: LedgerStore, tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_module, "_CHUNK", 7)
    store.append([row(number, at=ROW.at + (number * 37) % 100) for number in range(100)])
    file = tmp_path / f"usage.{suffix}"
    assert export(store, file) == 100
    frame = pl.read_csv(file) if suffix == "csv" else pl.read_parquet(file)
    assert sorted(frame["request_id"]) == sorted(f"req-{number}" for number in range(100))
    assert frame["at"].is_sorted()
    assert frame["prompt"].sum() == 100 * 100
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.parametrize("name", ["00000000.parquet", "usage[1].csv", "a*b?.parquet", "größe {x}.csv"])
def test_files_of_any_name(
    store: LedgerStore, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export_module, "_CHUNK", 2)
    store.append([row(number) for number in range(5)])
    file = tmp_path / "old [reports]" / name
    file.parent.mkdir()
    assert export(store, file) == 5
    assert [path.name for path in file.parent.iterdir()] == [name]
    data = file.read_bytes()
    frame = pl.read_csv(data) if file.suffix == ".csv" else pl.read_parquet(data)
    assert frame["request_id"].n_unique() == 5


def test_parquet_has_types_and_exact_money(store: LedgerStore, tmp_path: Path) -> None:
    store.append([ROW])
    export(store, tmp_path / "usage.parquet")
    (found,) = pl.read_parquet(tmp_path / "usage.parquet").to_dicts()
    assert found["money"] == Decimal("0.0000752")
    assert found["lost_money"] == Decimal("0.000036")
    assert found["at"] == datetime(2026, 3, 24, tzinfo=UTC)
    assert found["day"] == date(2026, 3, 24)
    assert found["avoidable"] is True
    assert found["written_by_ttl"] == '{"5m":50}'
    assert found["prompt"] == found["computed"] + found["read"] + found["written"] + found["free"]


def test_csv_writes_money_with_all_its_digits(store: LedgerStore, tmp_path: Path) -> None:
    store.append([ROW])
    export(store, tmp_path / "usage.csv")
    header, line = (tmp_path / "usage.csv").read_text(encoding="utf-8").splitlines()
    assert header.startswith("request_id,at,day,tenant,")
    assert ",0.000075200000," in line


def test_an_empty_export_has_its_columns(store: LedgerStore, tmp_path: Path) -> None:
    store.append([ROW])
    assert export(store, tmp_path / "usage.csv", Span(until=0)) == 0
    assert (tmp_path / "usage.csv").read_text(encoding="utf-8").count("\n") == 1


def test_other_endings_and_missing_folders_are_told(store: LedgerStore, tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"has to end with \.csv or \.parquet"):
        export(store, tmp_path / "usage.xlsx")
    with pytest.raises(LedgerError, match="Create it first"):
        export(store, tmp_path / "nowhere" / "usage.csv")
