"""Switching to the write-ahead log beside others who use the file."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from hotprefix.base.sqlite_log import use_write_ahead_log


class Noticed(sqlite3.Connection):
    """Says that something was tried."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.tried = Event()

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        try:
            return super().execute(*arguments)
        finally:
            self.tried.set()


def connected(path: Path) -> Noticed:
    return sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, factory=Noticed)


def test_it_waits_for_whoever_has_the_file_locked(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite3"
    with closing(connected(path)) as first, closing(connected(path)) as second:
        first.execute("BEGIN EXCLUSIVE")
        first.execute("CREATE TABLE it (x)")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            use_write_ahead_log(second, 0.0)
        second.tried.clear()
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(use_write_ahead_log, second, 30.0)
            assert second.tried.wait(30)
            first.execute("COMMIT")
            waiting.result(30)
        assert second.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_other_errors_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite3"
    path.write_bytes(b"no database" * 100)
    with closing(connected(path)) as connection, pytest.raises(sqlite3.DatabaseError, match="not a database"):
        use_write_ahead_log(connection, 30.0)
