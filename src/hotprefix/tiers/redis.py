"""The Redis or Valkey tier: records that several servers share.

The byte limit is ours, not `maxmemory`: beside the records of a scope lie a sorted set (key → the moment
until which it is wanted), a hash (key → bytes) and their sum, changed together with them by scripts
that the server runs as one. A record that Redis itself dropped is counted until its turn comes; where
it dropped one of the accounts, the next script makes them anew from the records that are there.
Everything expires after `ttl` seconds without use, so an abandoned scope leaves nothing behind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from hotprefix.base.clock import Clock
from hotprefix.base.errors import MissingExtra
from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import Record, StoreError, StoreStats
from hotprefix.tiers.cipher import Cipher
from hotprefix.tiers.record import HEADER_BYTES, DamagedRecord, RecordFormat, read_header

OVERHEAD_BYTES = 512
"""Counted for each record besides its bytes: its key and its entries in the set and the hash."""
TIMEOUT_SECONDS = 1.0
"""For connecting, and for each piece of an answer."""
TTL_SECONDS = 7 * 24 * 3600

# KEYS: wanted, sizes, total. ARGV: prefix of the records' keys, lifetime in ms, now, overhead, …
_COMMON = """
local function forget(member)
  redis.call('DEL', ARGV[1] .. member)
  redis.call('ZREM', KEYS[1], member)
  local size = redis.call('HGET', KEYS[2], member)
  if size then
    redis.call('HDEL', KEYS[2], member)
    redis.call('DECRBY', KEYS[3], size)
  end
end
local function note(member, length)
  local size = length + tonumber(ARGV[4])
  local old = redis.call('HGET', KEYS[2], member)
  redis.call('ZADD', KEYS[1], 'GT', ARGV[3], member)
  redis.call('HSET', KEYS[2], member, size)
  return redis.call('INCRBY', KEYS[3], size - (old or 0))
end
local function mend()
  local known, total = redis.call('HLEN', KEYS[2]), tonumber(redis.call('GET', KEYS[3]) or 0)
  if redis.call('ZCARD', KEYS[1]) == known and (known == 0) == (total == 0) then return end
  local members = {}
  for _, member in ipairs(redis.call('HKEYS', KEYS[2])) do members[member] = true end
  for _, member in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do members[member] = true end
  redis.call('DEL', KEYS[2], KEYS[3])
  for member in pairs(members) do
    local length = redis.call('STRLEN', ARGV[1] .. member)
    if length > 0 then note(member, length) else redis.call('ZREM', KEYS[1], member) end
  end
end
local function told(dropped)
  for _, name in ipairs(KEYS) do redis.call('PEXPIRE', name, ARGV[2]) end
  return {redis.call('ZCARD', KEYS[1]), tonumber(redis.call('GET', KEYS[3]) or 0), dropped}
end
"""
# … key, limit, record
_PUT = (
    _COMMON
    + """
redis.call('SET', ARGV[1] .. ARGV[5], ARGV[7], 'PX', ARGV[2])
mend()
local total = note(ARGV[5], #ARGV[7])
local dropped = 0
while total > tonumber(ARGV[6]) do
  local oldest = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
  if not oldest then break end
  forget(oldest)
  dropped = dropped + 1
  total = tonumber(redis.call('GET', KEYS[3]) or 0)
end
return told(dropped)
"""
)
# … key, key, …
_TOUCH = (
    _COMMON
    + """
mend()
for i = 5, #ARGV do
  if redis.call('PEXPIRE', ARGV[1] .. ARGV[i], ARGV[2]) == 0 then
    forget(ARGV[i])
  elseif redis.call('HEXISTS', KEYS[2], ARGV[i]) == 1 then
    redis.call('ZADD', KEYS[1], 'XX', 'GT', ARGV[3], ARGV[i])
  else
    note(ARGV[i], redis.call('STRLEN', ARGV[1] .. ARGV[i]))
  end
end
return told(0)
"""
)
# … key, key, …
_DELETE = _COMMON + "mend() for i = 5, #ARGV do forget(ARGV[i]) end return told(0)"


class RedisStore:
    """At most `limit` bytes for a scope, over all servers that share it. Needs the extra `redis`.

    Connects when it is first used, so the server may be down. Raises `StoreError` for a URL that is
    none, `MissingExtra` without the package.
    """

    def __init__(
        self,
        url: str,
        limit: int,
        scope: bytes,
        clock: Clock,
        cipher: Cipher | None = None,
        ttl: float = TTL_SECONDS,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        self._limit = limit
        self._scope = scope
        self._clock = clock
        self._format = RecordFormat(cipher)
        self._ttl = max(1, round(1000 * ttl))
        # The braces keep all keys of a scope in one slot.
        prefix = f"hotprefix:{{{scope.hex()}}}:"
        self._prefix = prefix + "record:"
        self._names = [prefix + name for name in ("wanted", "sizes", "total")]
        self._lock = Lock()
        self._records = self._bytes = self._dropped = self._damaged = 0
        self._client, self._failures, self._full = _connect(url, timeout)
        self._put_script = self._client.register_script(_PUT)
        self._touch_script = self._client.register_script(_TOUCH)
        self._delete_script = self._client.register_script(_DELETE)

    @property
    def name(self) -> str:
        return "redis"

    @property
    def is_indexed(self) -> bool:
        return False

    def contains(self, keys: Sequence[BlockKey]) -> list[bool]:
        if not keys:
            return []
        with self._told(), self._client.pipeline(transaction=False) as pipeline:
            for key in keys:
                pipeline.exists(self._prefix + key.hex())
            return [bool(count) for count in pipeline.execute()]

    def get(self, keys: Sequence[BlockKey]) -> list[Record | None]:
        if not keys:
            return []
        with self._told():
            values = self._client.mget([self._prefix + key.hex() for key in keys])
        records: list[Record | None] = []
        bad = []
        for key, value in zip(keys, values, strict=True):
            try:
                records.append(None if value is None else self._decode(key, value))
            except DamagedRecord:
                records.append(None)
                bad.append(key)
        found = [record.key for record in records if record is not None]
        if bad:
            with self._lock:
                self._damaged += len(bad)
        # A replica, or a server whose own disk is full, can still be read.
        with suppress(StoreError):
            if found:
                self._run(self._touch_script, [key.hex() for key in found])
            self.delete(bad)
        return records

    def put(self, record: Record) -> bool:
        header, body = self._format.encode(record)
        if record.scope != self._scope or len(header) + len(body) + OVERHEAD_BYTES > self._limit:
            return self._drop()
        try:
            self._run(
                self._put_script,
                [record.key.hex(), self._limit, header + body],
            )
        except StoreError as error:
            if not isinstance(error.__cause__, self._full):
                raise
            # `maxmemory` is reached and its policy evicts nothing.
            return self._drop()
        return True

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        """The latest wish of any server counts."""
        if keys and until > self._clock.wall():
            with self._told():
                self._client.zadd(self._names[0], {key.hex(): until for key in keys}, xx=True, gt=True)

    def delete(self, keys: Sequence[BlockKey]) -> None:
        if keys:
            self._run(self._delete_script, [key.hex() for key in keys])

    def stats(self) -> StoreStats:
        """As of the last answer of the server; nothing is asked."""
        with self._lock:
            return StoreStats(self._records, self._bytes, self._limit, self._dropped, self._damaged)

    def close(self) -> None:
        with self._told():
            self._client.close()

    def _drop(self) -> bool:
        with self._lock:
            self._dropped += 1
        return False

    def _decode(self, key: BlockKey, value: bytes) -> Record | None:
        """None for a record that another server encrypted with its key. Raises `DamagedRecord`."""
        header = read_header(value[:HEADER_BYTES])
        if header is None or (header.key, header.scope) != (key, self._scope):
            raise DamagedRecord("bytes that are not the record of their key")
        if not self._format.reads(header):
            return None
        return self._format.decode(header, value[HEADER_BYTES:])

    def _run(self, script: Callable[..., Any], arguments: list[Any]) -> None:
        with self._told():
            common = [self._prefix, self._ttl, self._clock.wall(), OVERHEAD_BYTES]
            records, size, dropped = script(keys=self._names, args=[*common, *arguments])
        with self._lock:
            self._records, self._bytes = int(records), int(size)
            self._dropped += int(dropped)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except self._failures as error:
            raise StoreError(f"Redis does not answer as it should: {error}") from error


def _connect(url: str, timeout: float) -> tuple[Any, tuple[type[Exception], ...], type[Exception]]:
    """A client that has not connected yet, what it raises, and what of it says that memory is full."""
    try:
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry
    except ImportError as error:
        raise MissingExtra(
            "A tier in Redis or Valkey needs redis. Install it with: pip install 'hotprefix[redis]'"
        ) from error
    try:
        _require_database(url)
        client = redis.Redis.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            # Once more: a pooled connection may have been closed by a restart of the server.
            retry=Retry(NoBackoff(), 1),
            decode_responses=False,
        )
        # Options of the URL are looked at when a connection is made, which does not connect yet.
        pool = client.connection_pool
        pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError, redis.RedisError):
        # What the library says may hold a part of the password.
        raise StoreError(
            "not the URL of a Redis or Valkey server. Write one like redis://:PASSWORD@localhost:6379/0, "
            "rediss://… for TLS, or unix:///run/redis.sock. In a password write @ / # ? % as %40 %2F %23 %3F "
            "%25; options behind a question mark are those of redis-py."
        ) from None
    return client, (redis.RedisError, OSError), redis.exceptions.OutOfMemoryError


def _require_database(url: str) -> None:
    """Raise `ValueError` where the library would take database 0 instead of what the URL says."""
    parts = urlsplit(url)
    if parts.scheme in ("redis", "rediss") and re.fullmatch(r"(/\d*)?", parts.path) is None:
        raise ValueError("the path of the URL is no number of a database")
