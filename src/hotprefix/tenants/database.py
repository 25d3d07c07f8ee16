"""The tenants' database: one SQLite file, shared by the server and the command line."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from hotprefix.base.sqlite_log import use_write_ahead_log
from hotprefix.tenants.errors import TenantError

_BUSY_SECONDS = 5.0

MIGRATIONS = (
    """
    CREATE TABLE api_key (
        id TEXT PRIMARY KEY,
        digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
        tenant TEXT NOT NULL,
        name TEXT NOT NULL,
        hint TEXT NOT NULL,
        created REAL NOT NULL,
        expires REAL,
        revoked REAL,
        is_admin INTEGER NOT NULL,
        requests_per_minute INTEGER,
        tokens_per_minute INTEGER,
        concurrent INTEGER
    ) STRICT;
    CREATE INDEX api_key_tenant ON api_key (tenant);
    CREATE TABLE tenant_quota (
        tenant TEXT PRIMARY KEY,
        floor_tokens INTEGER NOT NULL CHECK (floor_tokens >= 0),
        ceiling_tokens INTEGER CHECK (ceiling_tokens >= floor_tokens),
        mode TEXT NOT NULL,
        requests_per_minute INTEGER,
        tokens_per_minute INTEGER,
        concurrent INTEGER
    ) STRICT;
    CREATE TABLE public_prefix (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        document TEXT NOT NULL,
        created REAL NOT NULL
    ) STRICT;
    """,
)
"""Script n makes version n + 1 of version n."""


class Database:
    """A connection that any thread may use, one at a time. Raises `TenantError` if the file is bad."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = RLock()
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600)
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                use_write_ahead_log(self._connection, _BUSY_SECONDS)
                self._connection.execute("PRAGMA synchronous = FULL")
                self._migrate()
            except BaseException:
                self._connection.close()
                raise

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def rows(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._lock, self._told():
            return self._connection.execute(sql, parameters).fetchall()

    def write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        """Run `work` in a transaction of its own: all of it holds, or nothing."""
        with self._lock, self._told(), self._transaction():
            work(self._connection)

    def version(self) -> tuple[int, int]:
        """Changes with every commit, of this connection or of any other, in any process."""
        with self._lock, self._told():
            (others,) = self._connection.execute("PRAGMA data_version").fetchone()
            return int(others), self._connection.total_changes

    def _migrate(self) -> None:
        with self._transaction():
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version > len(MIGRATIONS):
                raise TenantError(
                    f"{self._path} is of version {version}, made by a newer Hotprefix; "
                    f"this one knows up to {len(MIGRATIONS)}. Upgrade Hotprefix."
                )
            for script in MIGRATIONS[version:]:
                for statement in filter(str.strip, script.split(";")):
                    self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise TenantError(
                f"The tenants' database {self._path} can't be used: {error}. Check the file, its permissions "
                "and the free space."
            ) from error
