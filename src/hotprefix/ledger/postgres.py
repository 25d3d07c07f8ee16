"""The ledger in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

from hotprefix.base.errors import MissingExtra
from hotprefix.ledger.columns import Value, values
from hotprefix.ledger.errors import LedgerError, RowRefused
from hotprefix.ledger.row import LedgerRow
from hotprefix.ledger.schema import INSERT, MIGRATIONS, VERSION_TABLE, pending

if TYPE_CHECKING:
    import psycopg

_CONNECT_SECONDS = 10
_FETCH = 5000
# Any number that other users of the database are unlikely to take: "hotp" in ASCII.
_MIGRATION_LOCK = 0x686F7470


class PostgresStore:
    """Any number of servers may share the database. A lost connection is made anew at the next call."""

    def __init__(self, url: str) -> None:
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtra(
                "A ledger in PostgreSQL needs psycopg. Install it with: pip install 'hotprefix[postgres]'"
            ) from error
        self._psycopg = psycopg
        self._url = url
        self._lock = Lock()
        self._writer: psycopg.Connection[tuple[Any, ...]] | None = None
        self._insert = _placeholders(INSERT)
        with self._told(), self._lock:
            self._migrate(self._connected())

    def append(self, rows: Sequence[LedgerRow]) -> None:
        """One transaction, as durable as the server's `synchronous_commit` makes it."""
        records = [values(row) for row in rows]
        with self._told(), self._lock:
            connection = self._connected()
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany(self._insert, records)

    def query(self, sql: str, parameters: Sequence[Value] = ()) -> Iterator[tuple[Any, ...]]:
        """On a connection and a server-side cursor of its own."""
        with self._told(), self._connect() as connection, connection.cursor(name="hotprefix") as cursor:
            cursor.itersize = _FETCH
            cursor.execute(_placeholders(sql).encode(), parameters)
            yield from cursor

    def close(self) -> None:
        with self._lock:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _connect(self) -> psycopg.Connection[tuple[Any, ...]]:
        return self._psycopg.connect(
            self._url, connect_timeout=_CONNECT_SECONDS, application_name="hotprefix", client_encoding="utf8"
        )

    def _connected(self) -> psycopg.Connection[tuple[Any, ...]]:
        if self._writer is None or self._writer.closed:
            self._writer = self._connect()
            self._writer.autocommit = True
        return self._writer

    def _migrate(self, connection: psycopg.Connection[tuple[Any, ...]]) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATION_LOCK,))
            connection.execute(VERSION_TABLE)
            row = connection.execute("SELECT version FROM ledger_version").fetchone()
            version = 0 if row is None else int(row[0])
            for statement in pending(version, "in PostgreSQL"):
                connection.execute(statement.encode())
            if version != len(MIGRATIONS):
                connection.execute("DELETE FROM ledger_version")
                connection.execute("INSERT INTO ledger_version VALUES (%s)", (len(MIGRATIONS),))

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors in our words; never with the URL, which holds a password."""
        try:
            yield
        except (self._psycopg.IntegrityError, self._psycopg.DataError) as error:
            raise RowRefused(f"The ledger in PostgreSQL refuses a row: {error}") from error
        except self._psycopg.Error as error:
            text = " ".join(str(error).split())
            raise LedgerError(f"The ledger in PostgreSQL can't be used: {text}") from error


def _placeholders(sql: str) -> str:
    return sql.replace("?", "%s")
