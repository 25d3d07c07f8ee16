"""The ledger's rows as a CSV or Parquet file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hotprefix.ledger.columns import COLUMNS, from_pico
from hotprefix.ledger.errors import LedgerError
from hotprefix.ledger.query import EVERYTHING, Span
from hotprefix.ledger.store import LedgerStore

if TYPE_CHECKING:
    import polars as pl

_CHUNK = 20_000
_SUFFIXES = (".csv", ".parquet")
_COUNTS = ("prompt", "computed", "read", "written", "free", "output", "matched", "ideal", "lost_tokens")
# Columns of the database that an export shows in another form.
_RENAMED = {"money_pico": "money", "lost_pico": "lost_money"}


def export(store: LedgerStore, file: Path, span: Span = EVERYTHING) -> int:
    """Write every request of `span`, oldest first, to `file` (.csv or .parquet), and return how many.

    The file appears whole or not at all, and memory does not grow with the number of requests.
    """
    if file.suffix not in _SUFFIXES:
        raise LedgerError(f"{file} has to end with {' or '.join(_SUFFIXES)}.")
    if not file.parent.is_dir():
        raise LedgerError(f"There is no folder {file.parent}. Create it first.")
    import polars as pl

    with tempfile.TemporaryDirectory(prefix=".usage-export.", dir=file.parent) as scratch:
        folder = Path(scratch)
        parts: list[Path] = []
        count = 0
        for rows in _chunks(store, span):
            parts.append(folder / f"{len(parts)}.part")
            _frame(rows).write_parquet(parts[-1])
            count += len(rows)
        if not parts:
            parts.append(folder / "0.part")
            _frame([]).write_parquet(parts[0])
        # Without `glob`: brackets in the folder's name are no pattern.
        whole = pl.scan_parquet(parts, glob=False)
        done = folder / "done"
        if file.suffix == ".csv":
            whole.sink_csv(done)
        else:
            whole.sink_parquet(done)
        done.replace(file)
    return count


def _chunks(store: LedgerStore, span: Span) -> Iterator[list[tuple[Any, ...]]]:
    where, parameters = span.where()
    sql = f"SELECT {', '.join(COLUMNS)} FROM ledger_request {where} ORDER BY at, request_id"
    rows = store.query(sql, parameters)
    while chunk := list(islice(rows, _CHUNK)):
        yield chunk


def _frame(rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    import polars as pl

    shown = [_shown(dict(zip(COLUMNS, row, strict=True))) for row in rows]
    types: dict[str, Any] = {_RENAMED.get(name, name): pl.String for name in COLUMNS}
    types |= dict.fromkeys(_COUNTS, pl.Int64) | {"status": pl.Int32, "avoidable": pl.Boolean}
    types |= dict.fromkeys(("first_token", "total"), pl.Float64)
    types |= dict.fromkeys(_RENAMED.values(), pl.Decimal(38, 12))
    types |= {"at": pl.Datetime("us", "UTC"), "day": pl.Date}
    return pl.DataFrame(shown, schema=types, orient="row")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    at = datetime.fromtimestamp(row["at"], UTC)
    money = {new: from_pico(row.pop(old)) for old, new in _RENAMED.items()}
    return row | money | {"at": at, "day": at.date(), "avoidable": bool(row["avoidable"])}
