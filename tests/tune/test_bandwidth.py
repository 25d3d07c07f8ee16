"""What is measured is told in the right unit, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from hotprefix.base.clock import ManualClock, SystemClock
from hotprefix.base.errors import HotprefixError
from hotprefix.tune.bandwidth import (
    disk_bandwidth,
    disk_facts,
    memory_bandwidth,
    redis_bandwidth,
    redis_facts,
)
from hotprefix.tune.machine import Disk
from tests.tiers.conftest import RedisServer, server_binary

MIB = 1024 * 1024


class TickingClock(ManualClock):
    """Every look at it takes a second."""

    def now(self) -> float:
        self.advance(1.0)
        return super().now()


def test_memory_counts_what_is_read_and_written() -> None:
    assert memory_bandwidth(TickingClock(), 1000) == 2000


def test_disk_is_written_and_read_whole(tmp_path: Path) -> None:
    disk = disk_facts(tmp_path / "not" / "there")
    assert (disk.folder, disk.write, disk.read) == (str(tmp_path), None, None)
    assert disk.free > 0
    found = disk_bandwidth(disk, TickingClock(), 8 * MIB)
    assert (found.write, found.read) == (8 * MIB, 8 * MIB)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("free", [0, 31 * MIB])
def test_a_full_disk_is_not_written_to(tmp_path: Path, free: int) -> None:
    assert disk_bandwidth(Disk(str(tmp_path), free), SystemClock(), 8 * MIB).read is None


def test_a_folder_that_is_gone_is_not_measured(tmp_path: Path) -> None:
    disk = Disk(str(tmp_path / "gone"), 100 * MIB)
    assert disk_bandwidth(disk, SystemClock(), 8 * MIB) == disk


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    server = RedisServer(server_binary(), tmp_path)
    yield server
    server.stop()


def test_a_real_redis(server: RedisServer) -> None:
    client = redis.Redis.from_url(server.url)
    whole = redis_facts(server.url)
    assert (whole.room is None, whole.read) == (False, None)
    client.config_set("maxmemory", str(64 * MIB))
    found = redis_bandwidth(server.url, redis_facts(server.url), SystemClock())
    assert (found.url, found.room) == (server.url, 64 * MIB)
    assert found.write is not None
    assert found.read is not None
    assert found.read > MIB
    assert client.keys() == []
    client.close()


@pytest.mark.parametrize("url", ["redis://user:secret@127.0.0.1:1/0", "nonsense://x"])
def test_a_redis_that_is_not_there_is_told_without_its_password(url: str) -> None:
    with pytest.raises(HotprefixError) as told:
        redis_facts(url)
    assert "secret" not in str(told.value)
    assert url.rsplit("@", maxsplit=1)[-1].split("/", maxsplit=1)[0] in str(told.value)
