"""The Redis tier against a real server: what is shared, what expires, what fails."""

from __future__ import annotations

from itertools import combinations

import pytest
import redis

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import StoreError
from hotprefix.tiers.cipher import Cipher
from hotprefix.tiers.redis import OVERHEAD_BYTES, RedisStore
from tests.tiers.conftest import RedisServer
from tests.tiers.records import OTHER_SCOPE, SCOPE, SECRET, fetch, key_of, present, record

LIMIT = 1_000_000


def client_of(server: RedisServer) -> redis.Redis:
    return redis.Redis.from_url(server.url)


def record_key(number: int) -> str:
    return f"hotprefix:{{{SCOPE.hex()}}}:record:{key_of(number).hex()}"


def test_servers_share_what_they_put(own_redis: RedisServer, clock: ManualClock) -> None:
    one, other = (RedisStore(own_redis.url, LIMIT, SCOPE, clock, timeout=30) for _ in range(2))
    stranger = RedisStore(own_redis.url, LIMIT, OTHER_SCOPE, clock, timeout=30)
    one.put(record(1))
    other.put(record(2))
    assert fetch(other, 1) == record(1)
    assert present(one, [1, 2]) == [1, 2]
    assert other.stats().records == 2
    assert present(stranger, [1, 2]) == []
    for store in (one, other, stranger):
        store.close()


def test_the_limit_is_one_for_all_servers(own_redis: RedisServer, clock: ManualClock) -> None:
    limit = 50_000
    stores = [RedisStore(own_redis.url, limit, SCOPE, clock, timeout=30) for _ in range(3)]
    for number in range(60):
        clock.advance(1)
        stores[number % 3].put(record(number, 4000))
    with client_of(own_redis) as client:
        sizes = [client.strlen(key) for key in client.scan_iter("*:record:*")]
    assert sum(sizes) + OVERHEAD_BYTES * len(sizes) <= limit
    assert present(stores[0], range(60)) == list(range(60 - len(sizes), 60))
    assert len(sizes) >= 9
    for store in stores:
        store.close()


def test_replaced_and_deleted_records_are_not_counted(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, timeout=30)
    store.put(record(1, 100))
    before = store.stats().bytes
    store.put(record(1, 9000))
    store.put(record(2, 500))
    store.delete([key_of(2), key_of(3)])
    store.put(record(1, 100))
    assert store.stats().bytes == before
    store.delete([key_of(1)])
    assert store.stats().bytes == 0
    store.close()


def test_everything_expires(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, ttl=100, timeout=30)
    store.put(record(1))
    with client_of(own_redis) as client:
        keys = list(client.scan_iter("*"))
        assert len(keys) == 4
        assert all(0 < client.pttl(key) <= 100_000 for key in keys)
        for key in keys:
            client.pexpire(key, 5000)
        assert fetch(store, 1) == record(1)  # a hit renews
        assert all(5000 < client.pttl(key) <= 100_000 for key in keys)
    store.close()


def test_what_redis_dropped_itself_is_a_miss(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, 50_000, SCOPE, clock, timeout=30)
    store.put(record(1))
    with client_of(own_redis) as client:
        client.delete(record_key(1))
        assert fetch(store, 1) is None
        assert present(store, [1]) == []
        for number in range(2, 80):
            clock.advance(1)
            store.put(record(number))
        assert store.stats().bytes <= 50_000
        assert int(client.get(f"hotprefix:{{{SCOPE.hex()}}}:total") or 0) == store.stats().bytes
    store.close()


ACCOUNTS = ("wanted", "sizes", "total")


@pytest.mark.parametrize(
    "lost", [names for n in (1, 2, 3) for names in combinations(ACCOUNTS, n)], ids="-".join
)
def test_accounts_that_redis_dropped_are_made_anew(
    own_redis: RedisServer, clock: ManualClock, lost: tuple[str, ...]
) -> None:
    """Whichever go, no script runs for ever and the limit holds for what is written or read later."""
    limit = 50_000
    store = RedisStore(own_redis.url, limit, SCOPE, clock, timeout=5)
    with client_of(own_redis) as client:

        def real() -> tuple[int, int]:
            sizes = [client.strlen(key) for key in client.scan_iter("*:record:*")]
            return len(sizes), sum(sizes) + OVERHEAD_BYTES * len(sizes)

        for number in range(8):
            store.put(record(number, 4000))
        client.delete(*[f"hotprefix:{{{SCOPE.hex()}}}:{name}" for name in lost])
        clock.advance(1)
        assert store.get([key_of(number) for number in range(8)]) == [record(n, 4000) for n in range(8)]
        assert (store.stats().records, store.stats().bytes) == real()
        client.delete(*[f"hotprefix:{{{SCOPE.hex()}}}:{name}" for name in lost])
        for number in range(8, 40):
            clock.advance(1)
            store.put(record(number, 4000))
        if {"wanted", "sizes"} <= set(
            lost
        ):  # nothing tells of records that are never asked for again: they expire
            client.delete(*map(record_key, range(8)))
        assert (store.stats().records, store.stats().bytes) == real()
        assert 0.8 * limit < store.stats().bytes <= limit
        assert fetch(store, 39) == record(39, 4000)
        store.delete([key_of(number) for number in range(40)])
        assert (store.stats().records, store.stats().bytes) == (0, 0)
    store.close()


def test_a_server_that_takes_no_writes_can_be_read(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, timeout=30)
    store.put(record(1))
    with client_of(own_redis) as client:
        client.config_set("min-replicas-to-write", 1)
        assert fetch(store, 1) == record(1)
        with pytest.raises(StoreError, match="Redis does not answer as it should"):
            store.put(record(2))
    store.close()


@pytest.mark.parametrize("cipher", [None, Cipher(SECRET)], ids=["open", "encrypted"])
def test_damaged_values_are_misses_and_go(
    own_redis: RedisServer, clock: ManualClock, cipher: Cipher | None
) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, cipher, timeout=30)
    with client_of(own_redis) as client:
        for number in range(3):
            store.put(record(number))
        whole = client.get(record_key(0))
        assert isinstance(whole, bytes)
        client.set(record_key(0), whole[:-1])
        client.set(record_key(1), whole)  # sound, but another's
        assert store.get([key_of(number) for number in range(3)]) == [None, None, record(2)]
        assert store.stats().damaged == 2
        assert store.stats().records == 1
        assert not client.exists(record_key(0), record_key(1))
    store.close()


def test_another_key_is_a_miss_and_harms_nobody(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, Cipher(SECRET), timeout=30)
    stranger = RedisStore(own_redis.url, LIMIT, SCOPE, clock, timeout=30)
    store.put(record(1))
    assert fetch(stranger, 1) is None
    assert fetch(store, 1) == record(1)
    store.close()
    stranger.close()


def test_full_memory_is_a_dropped_write(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, timeout=30)
    store.put(record(1))
    with client_of(own_redis) as client:
        client.config_set("maxmemory", 1)
        store.put(record(2))
        assert store.stats().dropped == 1
        assert fetch(store, 1) == record(1)
        client.config_set("maxmemory", 0)
    store.put(record(3))
    assert present(store, [1, 2, 3]) == [1, 3]
    store.close()


def test_a_server_that_comes_back(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, timeout=30)
    store.put(record(1))
    own_redis.stop()
    for call in (
        lambda: store.put(record(2)),
        lambda: fetch(store, 1),
        lambda: present(store, [1]),
        lambda: store.retain([key_of(1)], 5000),
        lambda: store.delete([key_of(1)]),
    ):
        with pytest.raises(StoreError, match="Redis does not answer"):
            call()
    own_redis.start()
    assert fetch(store, 1) is None
    store.put(record(2))
    assert fetch(store, 2) == record(2)
    store.close()


def test_a_server_that_hangs_is_an_error_in_time(own_redis: RedisServer, clock: ManualClock) -> None:
    store = RedisStore(own_redis.url, LIMIT, SCOPE, clock, timeout=0.05)
    store.put(record(1))
    with client_of(own_redis) as client:
        client.client_pause(2000)
    with pytest.raises(StoreError):
        fetch(store, 1)
    store.close()


def test_wrong_urls(clock: ManualClock) -> None:
    for url in (
        "localhost:6379",
        "http://localhost",
        "redis://localhost:port",
        "redis://localhost/name",
        "redis://localhost/-1",
        "redis://localhost?unknown=1",
        "rediss://localhost?ssl_cert_reqs=perhaps",
    ):
        with pytest.raises(StoreError, match="not the URL of a Redis or Valkey server"):
            RedisStore(url, LIMIT, SCOPE, clock)


def test_no_message_holds_a_part_of_a_password(clock: ManualClock) -> None:
    for url in ("redis://:hush#word@localhost:6379/0", "redis://me:hush/word@localhost:6379"):
        with pytest.raises(StoreError) as told:
            RedisStore(url, LIMIT, SCOPE, clock)
        assert "hush" not in str(told.value)
        assert told.value.__cause__ is None
    store = RedisStore("redis://:hush%23word@127.0.0.1:1/0?socket_timeout=0.1", LIMIT, SCOPE, clock)
    with pytest.raises(StoreError) as told:
        fetch(store, 1)
    assert "hush" not in str(told.value)
    store.close()


def test_a_wrong_password_is_an_error_that_says_so(own_redis: RedisServer, clock: ManualClock) -> None:
    with client_of(own_redis) as client:
        client.config_set("requirepass", "right")
    store = RedisStore(f"{own_redis.url}?password=wrong", LIMIT, SCOPE, clock, timeout=30)
    with pytest.raises(StoreError, match=r"(?i)password|authenticat"):
        store.put(record(1))
    store.close()
    store = RedisStore(f"{own_redis.url}?password=right", LIMIT, SCOPE, clock, timeout=30)
    store.put(record(1))
    assert fetch(store, 1) == record(1)
    store.close()


def test_a_server_that_is_not_there_stops_nobody(clock: ManualClock) -> None:
    store = RedisStore("unix:///nowhere/redis.sock", LIMIT, SCOPE, clock)
    assert store.stats().records == 0
    with pytest.raises(StoreError):
        fetch(store, 1)
    store.close()
