"""API keys in the database, with what was verified lately in memory."""

from __future__ import annotations

import hmac
import sqlite3
from collections import OrderedDict
from collections.abc import Callable
from threading import Lock
from typing import Any

from hotprefix.base.clock import Clock
from hotprefix.base.errors import Unauthenticated
from hotprefix.tenants.api_key import ApiKey, KeyState, KeyWish, NewKey, RateLimits, is_key, new_id, new_text
from hotprefix.tenants.database import Database
from hotprefix.tenants.derive import key_digest
from hotprefix.tenants.errors import TenantError, UnknownKey

_REMEMBERED = 4096
_RECHECK_SECONDS = 1.0
_COLUMNS = (
    "id, tenant, name, hint, created, expires, revoked, is_admin, "
    "requests_per_minute, tokens_per_minute, concurrent"
)
_INSERT = f"INSERT INTO api_key ({_COLUMNS}, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"


class KeyStore:
    """Makes, lists, revokes, rotates and verifies keys. Any thread may use it.

    A change made through this store counts at once. One made by another process counts when the
    database is asked again whether it has changed, at most `recheck` seconds later.
    """

    def __init__(
        self,
        database: Database,
        secret: bytes,
        clock: Clock,
        *,
        remembered: int = _REMEMBERED,
        recheck: float = _RECHECK_SECONDS,
    ) -> None:
        self._database = database
        self._secret = secret
        self._clock = clock
        self._recheck = recheck
        self._capacity = remembered
        self._lock = Lock()
        """Around what is remembered: looking up and remembering are one, so that no key which another thread
        revokes in between is remembered as good."""
        self._verified: OrderedDict[bytes, ApiKey] = OrderedDict()
        self._has_keys: bool | None = None
        self._version = database.version()
        self._checked = clock.now()

    @property
    def remembered(self) -> int:
        """Keys in memory."""
        return len(self._verified)

    def create(self, wish: KeyWish) -> NewKey:
        """A new key. Its text is in the answer and nowhere else."""
        made = self._made(wish)
        self._write(lambda connection: self._insert(connection, made))
        return made

    def list(self, tenant: str | None = None) -> list[ApiKey]:
        """All keys, revoked ones too, oldest first; or those of one tenant."""
        where, parameters = ("WHERE tenant = ?", (tenant,)) if tenant is not None else ("", ())
        query = f"SELECT {_COLUMNS} FROM api_key {where} ORDER BY created, rowid"
        return [_key(row) for row in self._database.rows(query, parameters)]

    def get(self, key_id: str) -> ApiKey:
        """A key by its id. Raises `UnknownKey`."""
        rows = self._database.rows(f"SELECT {_COLUMNS} FROM api_key WHERE id = ?", (key_id,))
        if not rows:
            raise UnknownKey(f"There is no key '{key_id[:80]}'; 'hotprefix keys list' shows their ids.")
        return _key(rows[0])

    def revoke(self, key_id: str) -> ApiKey:
        """A key that opens nothing any more; revoking twice changes nothing. Raises `UnknownKey`."""
        now = self._clock.wall()
        statement = "UPDATE api_key SET revoked = ? WHERE id = ? AND (revoked IS NULL OR revoked > ?)"
        self._write(lambda connection: connection.execute(statement, (now, key_id, now)))
        return self.get(key_id)

    def rotate(self, key_id: str, overlap: float = 0.0) -> NewKey:
        """A new key in the place of an active one, which goes on for `overlap` seconds.

        Raises `UnknownKey`, or `TenantError` if the key opens nothing any more.
        """
        old, now = self.get(key_id), self._clock.wall()
        if old.state(now) is not KeyState.ACTIVE:
            raise TenantError(f"The key {key_id} is {old.state(now)}; create a new one instead.")
        made = self._made(KeyWish(old.tenant, old.name, old.expires, old.is_admin, old.limits))
        end = now + overlap

        def work(connection: sqlite3.Connection) -> None:
            self._insert(connection, made)
            connection.execute("UPDATE api_key SET revoked = ? WHERE id = ?", (end, key_id))

        self._write(work)
        return made

    def verify(self, presented: str) -> ApiKey:
        """The active key with this text. Raises `Unauthenticated`, and says why."""
        if not is_key(presented):
            raise Unauthenticated("This is no API key of this server: its keys begin with 'hpk_'.")
        with self._lock:
            self._refresh()
            key = self._known(key_digest(self._secret, presented))
        state = key.state(self._clock.wall())
        if state is not KeyState.ACTIVE:
            raise Unauthenticated(f"The API key {key.id} is {state}; ask the operator for a new one.")
        return key

    def has_keys(self) -> bool:
        """Whether a key was ever made. Revoked ones count: nobody opens a server by revoking."""
        with self._lock:
            self._refresh()
            if self._has_keys is None:
                self._has_keys = bool(self._database.rows("SELECT 1 FROM api_key LIMIT 1"))
            return self._has_keys

    def _made(self, wish: KeyWish) -> NewKey:
        text = new_text()
        key = ApiKey(
            id=new_id(),
            tenant=wish.tenant,
            name=wish.name,
            hint=text[-4:],
            created=self._clock.wall(),
            expires=wish.expires,
            is_admin=wish.is_admin,
            limits=wish.limits,
        )
        return NewKey(key, text)

    def _insert(self, connection: sqlite3.Connection, made: NewKey) -> None:
        key, limits = made.key, made.key.limits
        values = (
            *(key.id, key.tenant, key.name, key.hint),
            *(key.created, key.expires, key.revoked, int(key.is_admin)),
            *(limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent),
            key_digest(self._secret, made.text),
        )
        connection.execute(_INSERT, values)

    def _known(self, digest: bytes) -> ApiKey:
        key = self._verified.get(digest)
        if key is not None:
            self._verified.move_to_end(digest)
            return key
        key = self._verified[digest] = self._looked_up(digest)
        if len(self._verified) > self._capacity:
            self._verified.popitem(last=False)
        return key

    def _looked_up(self, digest: bytes) -> ApiKey:
        # The index is searched by a digest that nobody can steer without the secret: its timing tells
        # nothing. The comparison that decides takes the same time wherever two digests differ.
        rows = self._database.rows(f"SELECT {_COLUMNS}, digest FROM api_key WHERE digest = ?", (digest,))
        if not rows or not hmac.compare_digest(rows[0][-1], digest):
            raise Unauthenticated("This API key is not known here. Check that it was copied whole.")
        return _key(rows[0][:-1])

    def _write(self, work: Callable[[sqlite3.Connection], object]) -> None:
        self._database.write(work)
        with self._lock:
            self._forget()

    def _refresh(self) -> None:
        now = self._clock.now()
        if now - self._checked < self._recheck:
            return
        self._checked = now
        version = self._database.version()
        if version != self._version:
            self._version = version
            self._forget()

    def _forget(self) -> None:
        self._verified.clear()
        self._has_keys = None


def _key(row: tuple[Any, ...]) -> ApiKey:
    key_id, tenant, name, hint, created, expires, revoked, is_admin, *limits = row
    return ApiKey(key_id, tenant, name, hint, created, expires, revoked, bool(is_admin), RateLimits(*limits))
