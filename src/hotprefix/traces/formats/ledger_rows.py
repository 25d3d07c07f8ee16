"""What `hotprefix usage --export` writes: one row a request, as CSV or Parquet.

The ledger keeps lengths and what was hit, not the text: a trace without identity.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.fields import count, moment, required
from hotprefix.traces.formats.azure import csv_rows
from hotprefix.traces.lines import Advance
from hotprefix.traces.request import RawRequest

_COLUMNS = ("at", "tenant", "prompt", "output")
_PARQUET = b"PAR1"
_CHUNK = 50_000


class LedgerFormat:
    """See the module."""

    name = "ledger"
    names_blocks = False

    def accepts(self, path: Path, head: bytes) -> bool:
        if head.startswith(_PARQUET):
            return True
        first = head.partition(b"\n")[0].decode("utf-8-sig", "replace").strip().split(",")
        return set(_COLUMNS) <= set(first)

    def block_size(self, path: Path) -> int | None:
        return None

    def read(self, path: Path, advance: Advance) -> Iterator[RawRequest]:
        rows = _parquet_rows(path, advance) if path.suffix == ".parquet" else csv_rows(path, advance)
        for place, row in rows:
            at = moment(required(row, "at", place), place)
            tenant = str(required(row, "tenant", place))
            yield RawRequest(at, tenant, None, count(row, "prompt", place), count(row, "output", place))


def _parquet_rows(path: Path, advance: Advance) -> Iterator[tuple[str, Mapping[str, Any]]]:
    import polars as pl

    frame = pl.scan_parquet(path)
    try:
        missing = set(_COLUMNS) - set(frame.collect_schema().names())
        if missing:
            raise BrokenTrace(
                f"{path} has no column {', '.join(sorted(missing))}: it is no export of a ledger."
            )
        start = 0
        while len(rows := frame.select(_COLUMNS).slice(start, _CHUNK).collect()):
            for number, row in enumerate(rows.iter_rows(named=True), start + 1):
                yield f"{path}: row {number}", row
            start += len(rows)
    except pl.exceptions.PolarsError as error:
        raise BrokenTrace(f"{path} is no Parquet file: {error}.") from error
    advance(path.stat().st_size)
