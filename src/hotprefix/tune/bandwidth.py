"""How fast memory, disk and Redis move bytes: short measurements, the best of a few."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import numpy as np

from hotprefix.base.clock import Clock
from hotprefix.base.errors import HotprefixError, MissingExtra
from hotprefix.tune.machine import Disk, Redis

MIB = 1024 * 1024
_MEMORY = 256 * MIB
_PIECE = 4 * MIB
_DISK = 64 * MIB
_REDIS = 1 * MIB
_REDIS_TIMES = 8
_ROUNDS = 3


def memory_bandwidth(clock: Clock, size: int = _MEMORY) -> float:
    """Bytes/s of copying an array that no cache holds; each byte is read once and written once."""
    source = np.ones(size, dtype=np.uint8)
    target = np.zeros_like(source)
    return 2 * size / _least(clock, lambda: np.copyto(target, source), _ROUNDS)


def disk_facts(folder: Path) -> Disk:
    """Free bytes where `folder` is or will be; nothing is created."""
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.is_dir())
    return Disk(str(there), shutil.disk_usage(there).free)


def disk_bandwidth(disk: Disk, clock: Clock, size: int = _DISK) -> Disk:
    """`disk` with the bytes/s of writing a file through to the medium, and of reading it back.

    The file goes at once. Where the folder can't be written to, or has too little room, nothing is measured.
    """
    if disk.free < 4 * size:
        return disk
    piece = np.random.default_rng(1).bytes(_PIECE)
    try:
        with tempfile.TemporaryFile(dir=disk.folder) as file:
            number = file.fileno()

            def write() -> None:
                for _ in range(size // _PIECE):
                    os.write(number, piece)
                os.fdatasync(number)

            written = _least(clock, write, 1)
            dropped = _drop_cache(number)
            os.lseek(number, 0, os.SEEK_SET)

            def read() -> None:
                while os.read(number, _PIECE):
                    pass

            seconds = _least(clock, read, 1)
    except OSError:
        return disk
    return Disk(disk.folder, disk.free, size / written, size / seconds, cached=not dropped)


def redis_facts(url: str) -> Redis:
    """What a Redis says it may hold. Raises `HotprefixError`."""
    with _client(url) as client:
        told = client.info("memory")
    room = int(told.get("maxmemory") or 0) or int(told.get("total_system_memory") or 0) // 4
    return Redis(_shown(url), room or None)


def redis_bandwidth(url: str, redis: Redis, clock: Clock) -> Redis:
    """`redis` with the bytes/s of records of 1 MiB; the one record that is written goes at once."""
    key = f"hotprefix:tune:{os.getpid()}"
    data = np.random.default_rng(1).bytes(_REDIS)
    with _client(url) as client:
        written = _least(clock, lambda: client.set(key, data, ex=60), _REDIS_TIMES)
        read = _least(clock, lambda: client.get(key), _REDIS_TIMES)
        client.delete(key)
    return Redis(redis.url, redis.room, _REDIS / written, _REDIS / read)


@contextmanager
def _client(url: str) -> Iterator[Any]:
    """A connection; what goes wrong with it becomes `HotprefixError`, without a password."""
    try:
        import redis
    except ImportError:
        raise MissingExtra("Redis needs a package: pip install 'hotprefix[redis]'") from None
    try:
        client = redis.Redis.from_url(url, socket_timeout=5, socket_connect_timeout=2)
    except ValueError as error:
        raise HotprefixError(f"{_shown(url)!r} is no URL of a Redis: {error}") from None
    try:
        yield client
    except redis.RedisError as error:
        raise HotprefixError(f"Redis at {_shown(url)} can't be used: {error}") from None
    finally:
        client.close()


def _shown(url: str) -> str:
    """The URL without a password."""
    parts = urlsplit(url)
    if parts.password is None:
        return url
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit(parts._replace(netloc=f"{parts.username or ''}:***@{place}"))


def _drop_cache(number: int) -> bool:
    """Ask the kernel to forget what it keeps of a file, so that reading it reads the medium."""
    if not hasattr(os, "posix_fadvise"):
        return False
    os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def _least(clock: Clock, work: Callable[[], object], times: int) -> float:
    """Seconds of the fastest of some runs: the others were disturbed."""
    seconds = []
    for _ in range(times):
        started = clock.now()
        work()
        seconds.append(clock.now() - started)
    return max(min(seconds), 1e-9)
