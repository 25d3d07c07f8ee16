"""Definitions of named caches in a SQLite file, so that they outlive a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

from hotprefix.modes.named_cache import Definition
from hotprefix.modes.state_file import StateFile

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
        self._file = StateFile(path, "named caches", _VERSION, _SCHEMA)

    def load(self) -> list[Definition]:
        columns = "tenant, name, document, identity, tokens, created, ttl, expires"
        rows = self._file.rows(f"SELECT {columns} FROM named_cache ORDER BY created, tenant, name")
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
        self._file.run("INSERT OR REPLACE INTO named_cache VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)

    def delete(self, tenant: str, name: str) -> None:
        self._file.run("DELETE FROM named_cache WHERE tenant = ? AND name = ?", (tenant, name))

    def close(self) -> None:
        self._file.close()
