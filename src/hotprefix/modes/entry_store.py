"""Explicit and session cache entries in a SQLite file: what was paid for is still known after a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.modes.entries import Entry
from hotprefix.modes.state_file import BrokenCacheStore, StateFile

ENTRIES_FILE = "entries.sqlite3"
_VERSION = 1
_SCHEMA = """
CREATE TABLE IF NOT EXISTS entry (
    key BLOB PRIMARY KEY,
    tenant TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    ttl REAL NOT NULL,
    expires REAL NOT NULL,
    name TEXT NOT NULL
) STRICT, WITHOUT ROWID
"""
_SAVED_SHARE = 0.25
"""A renewal is written down once it is worth this share of the lifetime: not with every hit."""


def _ignore(sentence: str) -> None:
    """For those who have nobody to tell."""


class SqliteEntries:
    """An `EntryJournal` in a file. Times in it are wall clock, so that they hold after a restart.

    Keys name model, KV format and tenant: entries of another model can't be found by any request,
    and end with their lifetime. Opening and loading raise `BrokenCacheStore` if the file is damaged, not
    writable or of a newer version. A change that can't be written later on, on a full disk for instance,
    is lost to the next process and no error of a request: `complain` gets a sentence for the first.
    """

    def __init__(self, path: Path, clock: Clock, complain: Callable[[str], object] = _ignore) -> None:
        self._clock = clock
        self._complain = complain
        self._is_failing = False
        self._saved: dict[BlockKey, float] = {}
        self._file = StateFile(path, "cache entries", _VERSION, _SCHEMA)

    def load(self) -> list[Entry]:
        """Entries that are still alive, in this process's time, without pins; others are deleted.

        None lives longer than its lifetime from now on: the clock may have been wrong when it was written.
        """
        wall = self._clock.wall()
        ahead = self._clock.now() - wall
        self._file.run("DELETE FROM entry WHERE expires <= ?", (wall,))
        found = self._file.rows("SELECT key, tenant, tokens, ttl, expires, name FROM entry")
        self._saved = {BlockKey(row[0]): row[4] for row in found}
        return [
            Entry(BlockKey(key), tenant, tokens, ttl, min(expires, wall + ttl) + ahead, "", name)
            for key, tenant, tokens, ttl, expires, name in found
        ]

    def keep(self, entry: Entry) -> None:
        expires = entry.expires - self._clock.now() + self._clock.wall()
        if expires - self._saved.get(entry.key, 0.0) < _SAVED_SHARE * entry.ttl:
            return
        row = (entry.key, entry.tenant, entry.tokens, entry.ttl, expires, entry.name)
        if self._run("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?, ?)", row):
            self._saved[entry.key] = expires

    def forget(self, key: BlockKey) -> None:
        if self._saved.pop(key, None) is not None:
            self._run("DELETE FROM entry WHERE key = ?", (key,))

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _run(self, statement: str, values: tuple[Any, ...]) -> bool:
        """Whether it was written."""
        try:
            self._file.run(statement, values)
        except BrokenCacheStore as error:
            if not self._is_failing:
                self._complain(f"{error} Until then, entries are not known after a restart.")
            self._is_failing = True
            return False
        self._is_failing = False
        return True
