"""Where rows are kept: SQLite in the state folder, or PostgreSQL by URL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from hotprefix.ledger.columns import Value
from hotprefix.ledger.errors import LedgerError
from hotprefix.ledger.row import LedgerRow

LEDGER_FILE = "ledger.sqlite3"


class LedgerStore(Protocol):
    """A database with the tables of `schema`. Every method may be called from any thread."""

    def append(self, rows: Sequence[LedgerRow]) -> None:
        """Store rows, all or none; when this returns they survive a crash. Known request ids are skipped.

        RowRefused if one of them can never be stored, another LedgerError if trying again may help.
        """
        ...

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]:
        """Rows of a SELECT with `?` for each parameter, fetched as they are consumed."""
        ...

    def close(self) -> None:
        """Give connections back."""
        ...


def open_store(place: Path | str) -> LedgerStore:
    """The ledger in a file, or at a postgresql:// URL; missing tables are created, older ones renewed."""
    if isinstance(place, Path):
        from hotprefix.ledger.sqlite import SqliteStore

        return SqliteStore(place)
    if place.startswith(("postgresql://", "postgres://")):
        from hotprefix.ledger.postgres import PostgresStore

        return PostgresStore(place)
    scheme = place.partition("://")[0]
    raise LedgerError(f"No ledger can be kept at {scheme}://…. Give a URL that begins with postgresql://.")
