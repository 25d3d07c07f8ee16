"""Stored responses in one SQLite file with a write-ahead log."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import orjson

from hotprefix.base.clock import Clock
from hotprefix.base.sqlite_log import use_write_ahead_log
from hotprefix.sessions.errors import SessionStoreError
from hotprefix.sessions.limits import DEFAULT_LIMITS, StoreLimits
from hotprefix.sessions.response import Chain, StoredResponse, Tombstone
from hotprefix.sessions.schema import MIGRATIONS

SESSION_FILE = "sessions.sqlite3"

_BUSY_SECONDS = 10.0
_ROW_OVERHEAD = 512
"""Bytes that a row takes beside its texts, about; so that empty responses have a limit too."""
_PURGE_STEP = 200
"""Expired rows that one write clears away: enough to keep up, too few to be noticed."""
_COLUMNS = "id, tenant, model, created, retention, document, input_items, answer, previous_id, depth, expires"

Row = tuple[str, str, str, float, float, bytes, bytes, str | None, str | None, int, float]


class ResponseStore:
    """What `previous_response_id` leads to. Not thread-safe: one thread at a time, see `Sessions`.

    Every look-up is by tenant and id together, so another tenant's id is answered exactly as one
    that never was. A use (as part of a chain, or by its id) starts the retention anew. Without a
    `path` responses are kept in memory, until the store is closed.
    """

    def __init__(self, path: Path | None, clock: Clock, limits: StoreLimits = DEFAULT_LIMITS) -> None:
        self._clock = clock
        self._limits = limits
        try:
            if path is not None:
                path.parent.mkdir(parents=True, exist_ok=True)
                # What people talked about is not for every user of the machine to read.
                path.touch(mode=0o600)
            self._db = self._connect(path or ":memory:")
        except (sqlite3.Error, OSError) as error:
            raise SessionStoreError(
                f"The file {path} can't be used for stored responses: {error}. Check it and its disk, or "
                "name another folder with --state-dir."
            ) from error

    def save(self, response: StoredResponse) -> StoredResponse:
        """Keep a response; when this returns it survives a killed process. Returns it with its expiry."""
        now = self._clock.wall()
        expires = now + response.retention
        document, items = orjson.dumps(response.document), orjson.dumps(response.input_items)
        size = len(document) + len(items) + len((response.answer or "").encode()) + _ROW_OVERHEAD
        values = (
            response.tenant, response.response_id, response.model, response.created, now, expires,
            response.retention, response.previous_id, response.depth, document, items, response.answer, size,
        )  # fmt: skip
        with self._transaction():
            self._db.execute(f"INSERT INTO response VALUES ({', '.join('?' * len(values))})", values)
            self._purge(now, _PURGE_STEP)
            self._make_room(response.tenant, response.response_id)
        return _renewed(response, expires)

    def load(self, tenant: str, response_id: str) -> StoredResponse | Tombstone | None:
        """A response, what is remembered of one that expired, or None."""
        now = self._clock.wall()
        with self._transaction():
            found, buried = self._find(tenant, response_id), self._buried(tenant, response_id)
            if found is None:
                return buried
            if found.expires <= now:
                return Tombstone(found.response_id, found.depth, found.expires)
            self._use(tenant, [response_id], now)
        return _renewed(found, now + found.retention)

    def chain(self, tenant: str, response_id: str) -> Chain:
        """All turns up to `response_id`; each of them is used by that."""
        now = self._clock.wall()
        turns: list[StoredResponse] = []
        wanted: str | None = response_id
        with self._transaction():
            while wanted is not None:
                found, buried = self._find(tenant, wanted), self._buried(tenant, wanted)
                if found is None or found.expires <= now:
                    if found is not None:
                        buried = Tombstone(found.response_id, found.depth, found.expires)
                    return Chain((), wanted, buried)
                turns.append(found)
                wanted = found.previous_id
            self._use(tenant, [turn.response_id for turn in turns], now)
        return Chain(tuple(_renewed(turn, now + turn.retention) for turn in reversed(turns)))

    def delete(self, tenant: str, response_id: str) -> bool:
        """Forget a response at its owner's wish; False if there is none to be seen."""
        now = self._clock.wall()
        with self._transaction():
            gone = self._db.execute(
                "DELETE FROM response WHERE tenant = ? AND id = ? AND expires > ?", (tenant, response_id, now)
            )
            return gone.rowcount > 0

    def purge(self) -> int:
        """Clear away all that has expired; tombstones stay. Returns how many."""
        with self._transaction():
            return self._purge(self._clock.wall(), -1)

    def count(self, tenant: str | None = None) -> tuple[int, int]:
        """Responses kept and their bytes, of one tenant or of all."""
        name = "" if tenant is None else f":{tenant}"
        row = self._db.execute("SELECT rows, bytes FROM holding WHERE name = ?", (name,)).fetchone()
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def close(self) -> None:
        self._db.close()

    def _find(self, tenant: str, response_id: str) -> StoredResponse | None:
        row: Row | None = self._db.execute(
            f"SELECT {_COLUMNS} FROM response WHERE tenant = ? AND id = ?", (tenant, response_id)
        ).fetchone()
        return None if row is None else _response(row)

    def _buried(self, tenant: str, response_id: str) -> Tombstone | None:
        row: tuple[str, int, float] | None = self._db.execute(
            "SELECT id, depth, expired FROM tombstone WHERE tenant = ? AND id = ?", (tenant, response_id)
        ).fetchone()
        return None if row is None else Tombstone(*row)

    def _use(self, tenant: str, ids: list[str], now: float) -> None:
        self._db.executemany(
            "UPDATE response SET used = ?, expires = ? + retention WHERE tenant = ? AND id = ?",
            [(now, now, tenant, name) for name in ids],
        )

    def _purge(self, now: float, most: int) -> int:
        rows = self._db.execute(
            "SELECT tenant, id, depth, expires FROM response WHERE expires <= ? ORDER BY expires LIMIT ?",
            (now, most),
        ).fetchall()
        self._bury(rows)
        return len(rows)

    def _bury(self, rows: list[tuple[str, str, int, float]]) -> None:
        if not rows:
            return
        self._db.executemany("INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?, ?)", rows)
        self._db.executemany("DELETE FROM response WHERE tenant = ? AND id = ?", [row[:2] for row in rows])
        self._db.execute(
            "DELETE FROM tombstone WHERE (tenant, id) IN (SELECT tenant, id FROM tombstone "
            "ORDER BY expired DESC LIMIT -1 OFFSET ?)",
            (self._limits.tombstones,),
        )

    def _make_room(self, tenant: str, kept: str) -> None:
        """The newest response always stays: a limit that it exceeds alone would make it useless."""
        limits, newest = self._limits, (tenant, kept)
        while self._over(self.count(tenant), limits.tenant_bytes, limits.tenant_rows):
            if not self._drop_oldest("tenant = ? AND (tenant, id) != (?, ?)", (tenant, *newest)):
                break
        while self._over(self.count(), limits.total_bytes):
            if not self._drop_oldest("(tenant, id) != (?, ?)", newest):
                break

    @staticmethod
    def _over(held: tuple[int, int], most_bytes: int, most_rows: int | None = None) -> bool:
        rows, size = held
        return size > most_bytes or (most_rows is not None and rows > most_rows)

    def _drop_oldest(self, where: str, parameters: tuple[str, ...]) -> bool:
        """Of turns used at the same time the last of the chain: those before it stay useful."""
        victims = self._db.execute(
            f"SELECT tenant, id, depth, MIN(expires, ?) FROM response WHERE {where} "
            "ORDER BY used, depth DESC LIMIT 1",
            (self._clock.wall(), *parameters),
        ).fetchall()
        self._bury(victims)
        return bool(victims)

    def _connect(self, path: Path | str) -> sqlite3.Connection:
        db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            use_write_ahead_log(db, _BUSY_SECONDS)
            # NORMAL: a killed process loses nothing; a power cut may lose the last turns, never the file.
            db.execute("PRAGMA synchronous = NORMAL")
            _migrate(db, path)
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with _transaction(self._db):
            yield


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _migrate(db: sqlite3.Connection, path: Path | str) -> None:
    # The lock is taken first, so of two processes that start together one finds the work done.
    with _transaction(db):
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
        if version > len(MIGRATIONS):
            raise SessionStoreError(
                f"The file {path} has version {version}, written by a newer Hotprefix; this one knows "
                f"{len(MIGRATIONS)}. Use the newer Hotprefix or another --state-dir."
            )
        for statement in (statement for step in MIGRATIONS[version:] for statement in step):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _response(row: Row) -> StoredResponse:
    name, tenant, model, created, retention, document, items, answer, previous, depth, expires = row
    return StoredResponse(
        name, tenant, model, created, retention, orjson.loads(document), orjson.loads(items), answer,
        previous, depth, expires,
    )  # fmt: skip


def _renewed(response: StoredResponse, expires: float) -> StoredResponse:
    """With its expiry, which the document tells as well."""
    document = response.document | {"expires_at": int(expires)}
    return replace(response, expires=expires, document=document)
