"""SQLite's write-ahead log, switched on where other processes may do the same."""

from __future__ import annotations

import sqlite3
from threading import Event

_PAUSE_SECONDS = 0.02


def use_write_ahead_log(connection: sqlite3.Connection, busy_seconds: float) -> None:
    """Switch to the write-ahead log, waiting up to so many seconds for others. Raises `sqlite3.Error`.

    SQLite waits for its locks by itself, but not for this one: of servers that start together with a new
    file, one would find it locked.
    """
    pause = Event()
    for _ in range(round(busy_seconds / _PAUSE_SECONDS)):
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            pause.wait(_PAUSE_SECONDS)
    connection.execute("PRAGMA journal_mode = WAL")
