"""A Redis server of our own, and stores of every kind."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import BlockStore
from hotprefix.tiers.cipher import Cipher
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.faulty import FaultyStore
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.ram import RamStore
from hotprefix.tiers.redis import RedisStore
from tests.tiers.records import SCOPE, SECRET

MISSING = "redis-server is not installed; the tests need a real one: apt-get install redis-server"

MakeStore = Callable[[int], BlockStore]
"""A store of so many bytes; called again, one that opens what is left of the former, which is closed."""


class RedisServer:
    """A process with an empty database on a Unix socket."""

    def __init__(self, binary: str, folder: Path) -> None:
        self._command = [binary, "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--save", ""]
        self._folder = folder
        self.url = f"unix://{folder / 'redis.sock'}"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=self._folder
        )
        assert self.process.stdout is not None
        said = []
        for line in self.process.stdout:
            said.append(line)
            if "eady to accept connections" in line:
                return
        raise AssertionError(f"{self._command[0]} did not start:\n{''.join(said)}")

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()
        assert self.process.stdout is not None
        self.process.stdout.close()


def server_binary() -> str:
    for name in ("redis-server", "valkey-server"):
        if path := shutil.which(name):
            return path
    if os.environ.get("CI") or shutil.which("apt-get"):
        pytest.fail(MISSING)
    pytest.skip(MISSING)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Shared by all tests: each uses a scope or a database of its own."""
    server = RedisServer(server_binary(), tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """One that a test may kill or configure."""
    server = RedisServer(server_binary(), tmp_path_factory.mktemp("redis"))
    yield server
    server.stop()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(1000.0)


def no_pause() -> None:
    raise AssertionError("this store is not slow")


KINDS = ("ram", "disk", "disk-encrypted", "redis", "redis-encrypted")
WRAPPED = (
    *KINDS,
    "guarded-ram",
    "guarded-disk",
    "guarded-redis",
    "faulty-ram",
    "faulty-disk",
    "faulty-redis",
)


@pytest.fixture(params=WRAPPED)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(
    kind: str, clock: ManualClock, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[MakeStore]:
    opened: list[BlockStore] = []
    cipher = Cipher(SECRET) if "encrypted" in kind else None

    def build(limit: int) -> BlockStore:
        if "ram" in kind:
            return RamStore(limit, SCOPE, clock)
        if "disk" in kind:
            return DiskStore(tmp_path / "tier", limit, SCOPE, clock, cipher)
        server = request.getfixturevalue("redis_server")
        return RedisStore(server.url, limit, SCOPE, clock, cipher, timeout=30)

    def make(limit: int) -> BlockStore:
        if opened:
            opened.pop().close()
        store = build(limit)
        if kind.startswith("guarded"):
            store = GuardedStore(store, clock)
        if kind.startswith("faulty"):
            store = FaultyStore(store, lambda call: None, no_pause)
        opened.append(store)
        return store

    if "redis" in kind:
        empty(request.getfixturevalue("redis_server"))
    yield make
    for store in opened:
        store.close()


def empty(server: RedisServer) -> None:
    import redis

    client = redis.Redis.from_url(server.url)
    client.flushall()
    client.close()
