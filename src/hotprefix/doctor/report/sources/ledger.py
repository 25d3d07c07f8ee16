"""Our own ledger: its SQLite file, its PostgreSQL database, its exports."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl

from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.report.call import Source
from hotprefix.doctor.report.columns import aligned
from hotprefix.ledger.store import open_store

_CHUNK = 50_000
_SAME = (
    "request_id", "at", "tenant", "model", "profile", "scene", "prompt_name", "prompt_version", "mode",
    "prompt", "read", "written", "free", "output", "currency", "reason", "detail", "evidence",
    "advice_en", "advice_zh", "first_token", "total", "finish",
)  # fmt: skip
_STORED = (*_SAME, "money_pico", "lost_tokens", "lost_pico", "avoidable", "divergence")
_EXPORTED = (*_SAME, "money", "lost_tokens", "lost_money", "avoidable", "divergence")
_NAMES = ("tenant", "model", "scene", "prompt_name", "prompt_version", "detail", "finish")


def is_export(columns: Iterable[str]) -> bool:
    """Whether a table with these columns is an export of the ledger."""
    return set(_EXPORTED) <= set(columns)


def sqlite_frames(path: Path) -> Iterator[pl.DataFrame]:
    """The calls of a ledger file, which may be in use: nothing of it is changed."""
    sql = f"SELECT {', '.join(_STORED)} FROM ledger_request"
    try:
        with closing(_read_only(path)) as connection:
            cursor = connection.execute(sql)
            while rows := cursor.fetchmany(_CHUNK):
                yield _stored_frame(rows)
    except sqlite3.Error as error:
        raise UnreadableFile(
            f"{path} is a SQLite file, but no ledger that can be read: {error}. Name the ledger.sqlite3 of a "
            "server's state folder."
        ) from error


def postgres_frames(url: str) -> Iterator[pl.DataFrame]:
    """The calls of a ledger in PostgreSQL. Raises LedgerError."""
    with closing(open_store(url)) as store:
        rows = store.query(f"SELECT {', '.join(_STORED)} FROM ledger_request")
        while chunk := list(islice(rows, _CHUNK)):
            yield _stored_frame(chunk)


def export_table(exported: pl.LazyFrame) -> pl.LazyFrame:
    """The calls of an export; columns of a CSV file may all be text."""
    schema = exported.collect_schema()
    is_text = schema["at"] == pl.String
    at = pl.col("at").str.to_datetime(time_unit="us", time_zone="UTC") if is_text else pl.col("at")
    avoidable = pl.col("avoidable") == "true" if is_text else pl.col("avoidable")
    counts = [
        pl.col(name).cast(pl.Decimal(38, 12)).to_physical().cast(pl.Int64) for name in ("money", "lost_money")
    ]
    return exported.select(
        *(pl.col(name) for name in _SAME if name != "at"),
        at.dt.epoch("us").cast(pl.Float64).truediv(1e6).alias("at"),
        avoidable.alias("avoidable"),
        pl.col("lost_tokens").alias("lost"),
        pl.col("divergence"),
        *counts,
    ).with_columns(_of_ledger())


def _read_only(path: Path) -> sqlite3.Connection:
    place = f"{path.resolve().as_uri()}?mode=ro"
    try:
        return _checked(sqlite3.connect(place, uri=True))
    except sqlite3.OperationalError:
        # In a folder that can't be written to there is no room for the index of a write-ahead log.
        if Path(f"{path}-wal").exists():
            raise
        return _checked(sqlite3.connect(f"{place}&immutable=1", uri=True))


def _checked(connection: sqlite3.Connection) -> sqlite3.Connection:
    try:
        connection.execute("SELECT 1 FROM ledger_request LIMIT 1")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _stored_frame(rows: Sequence[Sequence[Any]]) -> pl.DataFrame:
    columns = dict(zip(_STORED, zip(*rows, strict=True), strict=True))
    frame = pl.DataFrame({name: pl.Series(name, values, strict=False) for name, values in columns.items()})
    renamed = frame.rename({"money_pico": "money", "lost_tokens": "lost", "lost_pico": "lost_money"})
    return aligned(renamed.with_columns(_of_ledger()))


def _of_ledger() -> list[pl.Expr]:
    """What every form of the ledger needs: empty names are none, and the path of the first difference."""
    names = [pl.when(pl.col(name) != "").then(pl.col(name)).alias(name) for name in _NAMES]
    path = pl.col("divergence").cast(pl.String).str.json_path_match("$.path").alias("path")
    return [*names, path, pl.lit(Source.LEDGER.value).alias("source")]
