"""Definitions of named caches in a SQLite file, so that they outlive a restart."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from hotprefix.base.errors import HotprefixError
from hotprefix.modes.named_cache import Definition

CACHES_FILE = "caches.sqlite3"
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS named_cache (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    document TEXT NOT NULL,
    identity TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    created REAL NOT NULL,
    ttl REAL,
    expires REAL,
    PRIMARY KEY (tenant, name)
) STRICT
"""


class BrokenCacheStore(HotprefixError):
    """The file with the definitions can't be used."""


class NamedStore(Protocol):
    """Where definitions are kept."""

    def load(self) -> list[Definition]:
        """All of them."""
        ...

    def save(self, definition: Definition) -> None:
        """Keep it in place of one with the same tenant and name."""
        ...

    def delete(self, tenant: str, name: str) -> None: ...

    def close(self) -> None: ...


class MemoryStore:
    """Keeps nothing beyond the process."""

    def load(self) -> list[Definition]:
        return []

    def save(self, definition: Definition) -> None:
        pass

    def delete(self, tenant: str, name: str) -> None:
        pass

    def close(self) -> None:
        pass


class SqliteNamedStore:
    """A file. Raises `BrokenCacheStore` if it is damaged, not writable or of a newer version."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with self._told():
            path.parent.mkdir(parents=True, exist_ok=True)
            # Prompts are not for every user of the machine to read.
            path.touch(mode=0o600)
            self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise

    def load(self) -> list[Definition]:
        columns = "tenant, name, document, identity, tokens, created, ttl, expires"
        with self._told():
            rows = self._connection.execute(
                f"SELECT {columns} FROM named_cache ORDER BY created, tenant, name"
            ).fetchall()
        return [Definition(row[0], row[1], json.loads(row[2]), *row[3:]) for row in rows]

    def save(self, definition: Definition) -> None:
        row = (
            definition.tenant,
            definition.name,
            json.dumps(definition.document, ensure_ascii=False),
            definition.identity,
            definition.tokens,
            definition.created,
            definition.ttl,
            definition.expires,
        )
        with self._told():
            self._connection.execute(
                "INSERT OR REPLACE INTO named_cache VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row
            )

    def delete(self, tenant: str, name: str) -> None:
        with self._told():
            self._connection.execute("DELETE FROM named_cache WHERE tenant = ? AND name = ?", (tenant, name))

    def close(self) -> None:
        self._connection.close()

    def _prepare(self) -> None:
        self._connection.execute("PRAGMA journal_mode = WAL")
        # A definition that is lost with the power costs one request; waiting for the disk costs every one.
        self._connection.execute("PRAGMA synchronous = NORMAL")
        (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        if version > _VERSION:
            raise BrokenCacheStore(
                f"{self._path} is of version {version}, made by a newer Hotprefix. Upgrade, or move it away."
            )
        self._connection.execute(_SCHEMA)
        self._connection.execute(f"PRAGMA user_version = {_VERSION}")

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise BrokenCacheStore(
                f"The named caches in {self._path} can't be used: {error}. Move the file away to go on."
            ) from error
