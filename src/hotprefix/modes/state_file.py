"""A small SQLite file of the state folder: opened, brought to its schema, and closed again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hotprefix.base.errors import HotprefixError
from hotprefix.base.sqlite_log import use_write_ahead_log

_BUSY_SECONDS = 5.0


class BrokenCacheStore(HotprefixError):
    """A file with named caches or cache entries can't be used."""


class StateFile:
    """`what` names the contents in messages. `version` is the newest that this server knows.

    Every verb raises `BrokenCacheStore` if the file is damaged or not writable, opening it also if
    it is of a newer version.
    """

    def __init__(self, path: Path, what: str, version: int, schema: str) -> None:
        self._path = path
        self._what = what
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True)
            # Prompts are not for every user of the machine to read.
            path.touch(mode=0o600)
            self._connection = sqlite3.connect(
                path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(version, schema)
            except BaseException:
                self._connection.close()
                raise

    def rows(self, query: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._told():
            return self._connection.execute(query, values).fetchall()

    def run(self, statement: str, values: tuple[Any, ...] = ()) -> None:
        """A change, written at once."""
        with self._told():
            self._connection.execute(statement, values)

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _prepare(self, newest: int, schema: str) -> None:
        use_write_ahead_log(self._connection, _BUSY_SECONDS)
        # What is lost with the power costs one request; waiting for the disk costs every one.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > newest:
            raise BrokenCacheStore(
                f"{self._path} is of version {version}, made by a newer Hotprefix. Upgrade, or move it away."
            )
        self._connection.execute(schema)
        self._connection.execute(f"PRAGMA user_version = {newest}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise BrokenCacheStore(
                f"The {self._what} in {self._path} can't be used: {error}. Move the file away to go on."
            ) from error
