"""The ledger in one SQLite file with a write-ahead log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from hotprefix.base.sqlite_log import use_write_ahead_log
from hotprefix.ledger.columns import Value, values
from hotprefix.ledger.errors import LedgerError, RowRefused
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.schema import INSERT, MIGRATIONS, VERSION_TABLE, pending

_BUSY_SECONDS = 30.0
_FETCH = 5000


class SqliteStore:
    """Any number of processes may write to and read from the same file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()
        with _told(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            # What people used and paid is not for every user of the machine to read.
            path.touch(mode=0o600)
            self._writer = self._connect()
            try:
                self._migrate()
            except BaseException:
                self._writer.close()
                raise

    def append(self, rows: Sequence[LedgerRow]) -> None:
        """One transaction, synced to the disk."""
        records = [values(row) for row in rows]
        with self._lock, _told(self._path), self._transaction():
            self._writer.executemany(INSERT, records)

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]:
        """On a connection of its own, so that reading never waits for writing."""
        with _told(self._path), closing(self._connect()) as connection:
            cursor = connection.execute(sql, parameters)
            while rows := cursor.fetchmany(_FETCH):
                yield from rows

    def close(self) -> None:
        with self._lock:
            self._writer.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            use_write_ahead_log(connection, _BUSY_SECONDS)
            # NORMAL would survive a killed process, but not a power cut.
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _migrate(self) -> None:
        # The lock is taken first, so of two processes that start together one finds the work done.
        with self._transaction():
            self._writer.execute(VERSION_TABLE)
            row = self._writer.execute("SELECT version FROM ledger_version").fetchone()
            version = 0 if row is None else int(row[0])
            for statement in pending(version, str(self._path)):
                self._writer.execute(statement)
            if version != len(MIGRATIONS):
                self._writer.execute("DELETE FROM ledger_version")
                self._writer.execute("INSERT INTO ledger_version VALUES (?)", (len(MIGRATIONS),))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._writer.execute("COMMIT")
        except BaseException:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            raise


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.DataError) as error:
        raise RowRefused(f"The ledger {path} refuses a row: {error}.") from error
    except sqlite3.Error as error:
        raise LedgerError(
            f"The ledger {path} can't be used: {error}. Check the file and its disk."
        ) from error
