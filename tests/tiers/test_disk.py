"""The disk tier: its files, its lock, its limits, and a disk that is full."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from hotprefix.base.clock import ManualClock
from hotprefix.tiers.base import StoreError
from hotprefix.tiers.cipher import Cipher
from hotprefix.tiers.disk import DiskStore, segment_bytes
from hotprefix.tiers.folder_lock import FolderInUse
from hotprefix.tiers.segment import Segment
from tests.tiers.records import OTHER_SCOPE, SCOPE, SECRET, fetch, key_of, present, record

LIMIT = 1_000_000
SIZE = 4000
ROOT = Path(__file__).resolve().parents[2]


def opened(folder: Path, clock: ManualClock, limit: int = LIMIT, scope: bytes = SCOPE) -> DiskStore:
    return DiskStore(folder, limit, scope, clock)


def fill(store: DiskStore, count: int, scope: bytes = SCOPE) -> None:
    for number in range(count):
        store.put(record(number, SIZE, scope=scope))


def test_two_servers_cannot_share_a_folder(tmp_path: Path, clock: ManualClock) -> None:
    store = opened(tmp_path, clock)
    with pytest.raises(FolderInUse, match=rf"in use by another server \(process {os.getpid()}\)"):
        opened(tmp_path, clock)
    store.put(record(1))
    store.close()
    again = opened(tmp_path, clock)
    assert fetch(again, 1) == record(1)
    again.close()


def test_another_process_is_told_too(tmp_path: Path, clock: ManualClock) -> None:
    store = opened(tmp_path, clock)
    command = [sys.executable, "-m", "tests.tiers.crashing_writer", str(tmp_path), str(LIMIT), "0"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 1
    assert f"in use by another server (process {os.getpid()})" in result.stderr
    store.close()


def test_a_folder_that_cannot_be(tmp_path: Path, clock: ManualClock) -> None:
    file = tmp_path / "file"
    file.write_text("x", encoding="ascii")
    with pytest.raises(StoreError, match="can't be used as a disk tier"):
        opened(file / "tier", clock)


def test_a_file_system_without_locks_is_not_another_server(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(StoreError, match="can't be locked: No locks available") as told:
        opened(tmp_path, clock)
    assert not isinstance(told.value, FolderInUse)


def test_a_file_that_can_not_be_opened_is_named(tmp_path: Path, clock: ManualClock) -> None:
    (tmp_path / f"segment-{3:016x}.kv").mkdir()
    with pytest.raises(StoreError, match=r"segment-0+3\.kv: Is a directory.*delete the folder"):
        opened(tmp_path, clock)
    (tmp_path / f"segment-{3:016x}.kv").rmdir()
    opened(tmp_path, clock).close()  # the lock was given back


def test_a_bad_sector_costs_its_record_not_the_tier(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the medium can't give back can't be moved on, and must not stop all writing for ever."""
    read = Segment.read
    bad: set[tuple[int, int]] = set()

    def broken(segment: Segment, offset: int, size: int) -> bytes:
        if (segment.number, offset) in bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return read(segment, offset, size)

    monkeypatch.setattr(Segment, "read", broken)
    store = opened(tmp_path, clock)
    for number in range(3):
        store.put(record(number, SIZE))
    store.retain([key_of(number) for number in range(3)], clock.wall() + 1000)
    bad.add((0, store._index[key_of(1)].offset))
    for number in range(10, 600):
        assert store.put(record(number, SIZE))
    assert present(store, range(3)) == [0, 2]
    store.close()


def test_a_segment_that_could_not_be_begun_is_begun_later(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, clock)
    fsync = os.fsync
    faults = [errno.EIO, errno.EIO, errno.EINVAL]  # the last: a file system that can't sync folders

    def failing(handle: int) -> None:
        if faults:
            raise OSError(faults[0], os.strerror(faults.pop(0)))
        fsync(handle)

    monkeypatch.setattr("os.fsync", failing)
    for _ in range(2):
        with pytest.raises(StoreError, match="can't be written"):
            store.put(record(1))
        assert not list(tmp_path.glob("*.kv"))
    assert store.put(record(1))
    assert fetch(store, 1) == record(1)
    store.close()


def test_the_medium_has_it_soon(tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every ten seconds while records come, and when it is asked for; not again for nothing new."""
    synced: list[int] = []
    sync = Segment.sync
    monkeypatch.setattr(Segment, "sync", lambda segment: (synced.append(segment.size), sync(segment)))
    store = opened(tmp_path, clock)
    for number in range(12):
        store.put(record(number, SIZE))
        clock.advance(1)
    assert len(synced) == 1
    store.sync()
    store.sync()
    assert len(synced) == 2
    assert synced[-1] == store.stats().bytes
    store.close()
    assert len(synced) == 2


def test_a_few_more_than_half_retained_do_not_cost_all_writing(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Moving them on again and again would write many bytes for each that is new."""
    written = 0
    append = Segment.append

    def counted(segment: Segment, parts: Sequence[bytes]) -> int:
        nonlocal written
        written += sum(len(part) for part in parts)
        return append(segment, parts)

    monkeypatch.setattr(Segment, "append", counted)
    monkeypatch.setattr("hotprefix.tiers.disk.LEAST_SEGMENTS", 64)
    store = opened(tmp_path, clock)
    for number in range(160):
        store.put(record(number, SIZE))
        store.retain([key_of(number)], clock.wall() + 1000)
    written = 0
    for number in range(1000, 1200):
        store.put(record(number, SIZE))
    assert written < 4 * 200 * SIZE
    kept = present(store, range(160))
    assert len(kept) * SIZE > LIMIT // 4
    assert kept == list(range(160 - len(kept), 160))
    store.close()


def test_only_its_owner_may_read(tmp_path: Path, clock: ManualClock) -> None:
    store = opened(tmp_path / "tier", clock)
    store.put(record(1))
    modes = [path.stat().st_mode & 0o077 for path in (tmp_path / "tier", *(tmp_path / "tier").iterdir())]
    assert modes == [0] * len(modes)
    assert len(modes) == 3
    store.close()


def test_other_scopes_stay_until_there_is_need_of_room(tmp_path: Path, clock: ManualClock) -> None:
    fill(store := opened(tmp_path, clock, scope=OTHER_SCOPE), 50, OTHER_SCOPE)
    store.close()
    store = opened(tmp_path, clock)
    assert store.stats().records == 0
    assert store.stats().bytes > 50 * SIZE
    store.put(record(1, SIZE))
    store.close()
    store = opened(tmp_path, clock, scope=OTHER_SCOPE)
    assert store.stats().records == 50
    assert fetch(store, 7) == record(7, SIZE, scope=OTHER_SCOPE)
    store.close()
    fill(store := opened(tmp_path, clock), 400)
    assert store.stats().bytes <= LIMIT
    store.close()
    store = opened(tmp_path, clock, scope=OTHER_SCOPE)
    assert store.stats().records == 0
    store.close()


def test_a_smaller_limit_drops_the_oldest(tmp_path: Path, clock: ManualClock) -> None:
    fill(store := opened(tmp_path, clock), 150)
    before = present(store, range(150))
    store.close()
    store = opened(tmp_path, clock, LIMIT // 2)
    kept = present(store, range(150))
    assert store.stats().bytes <= LIMIT // 2
    assert kept == before[-len(kept) :]
    assert len(kept) > 30
    store.close()


def test_the_limit_holds_while_records_are_moved(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every single write, when the new copies are there and the old segment is too."""
    append = Segment.append
    sizes = []

    def watched(segment: Segment, parts: Sequence[bytes]) -> int:
        offset = append(segment, parts)
        sizes.append(sum(path.stat().st_size for path in tmp_path.glob("*.kv")))
        return offset

    monkeypatch.setattr(Segment, "append", watched)
    store = opened(tmp_path, clock)
    for number in range(500):
        store.put(record(number, SIZE))
        if number % 3 == 0:
            store.get([key_of(number)])
        if number % 5 == 0:
            store.retain([key_of(number)], clock.wall() + 1000)
    assert len(sizes) > 600  # moved ones among them
    assert 0.8 * LIMIT < max(sizes) <= LIMIT
    store.close()


def test_with_another_key_everything_is_a_miss(tmp_path: Path, clock: ManualClock) -> None:
    def with_key(cipher: Cipher | None) -> DiskStore:
        return DiskStore(tmp_path, LIMIT, SCOPE, clock, cipher)

    store = with_key(Cipher(SECRET))
    store.put(record(1, SIZE))
    store.close()
    assert all(record(1, SIZE).payload[:64] not in path.read_bytes() for path in tmp_path.iterdir())
    for cipher in (None, Cipher(bytes(32))):
        store = with_key(cipher)
        assert fetch(store, 1) is None
        store.close()
    store = with_key(Cipher(SECRET))
    assert fetch(store, 1) == record(1, SIZE)
    store.close()


def test_a_closed_one_says_so(tmp_path: Path, clock: ManualClock) -> None:
    store = opened(tmp_path, clock)
    store.close()
    store.close()
    for call in (lambda: store.put(record(1)), lambda: fetch(store, 1), lambda: store.delete([key_of(1)])):
        with pytest.raises(StoreError, match="closed"):
            call()
    assert store.stats().records == 0


def test_a_reader_is_not_disturbed_by_the_end_of_its_segment(tmp_path: Path, clock: ManualClock) -> None:
    store = opened(tmp_path, clock)
    store.put(record(0, SIZE))
    place = store._index[key_of(0)]
    fill(store, 600)
    assert not place.segment.path.exists()
    header_and_body = place.segment.read(place.offset, place.size)
    assert record(0, SIZE).payload in header_and_body
    store.close()


def test_descriptors_are_given_back(tmp_path: Path, clock: ManualClock) -> None:
    def count() -> int:
        links = [path for path in Path("/proc/self/fd").iterdir() if path.is_symlink()]
        return sum(str(link.readlink()).startswith(str(tmp_path)) for link in links)

    fill(store := opened(tmp_path, clock), 600)
    assert 2 <= count() <= 10
    store.close()
    assert count() == 0


def test_segments_are_neither_few_nor_too_many() -> None:
    for limit in (1_000, 1 << 20, 1 << 30, 1 << 36, 1 << 44):
        assert 8 <= limit / segment_bytes(limit) <= 256
    assert segment_bytes(1 << 30) == 1 << 27
    assert segment_bytes(1 << 35) == 256 << 20
    assert segment_bytes(1) == 1


def test_others_on_the_disk_are_left_room(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The limit was set higher than the disk allows: the oldest goes before ledger and sessions suffer."""
    size, others = LIMIT // 2, 0

    def usage(folder: Path) -> SimpleNamespace:
        return SimpleNamespace(free=size - others - sum(path.stat().st_size for path in folder.glob("*.kv")))

    monkeypatch.setattr("hotprefix.tiers.disk.disk_usage", usage)
    store = opened(tmp_path, clock)
    for others in (0, size // 4):
        for number in range(300):
            assert store.put(record(number, SIZE, version=others))
        assert usage(tmp_path).free >= segment_bytes(LIMIT)
        assert fetch(store, 299) == record(299, SIZE, version=others)
        assert store.stats().bytes > size // 4
    store.close()


FULL_DISK = """
import resource, sys
from pathlib import Path
from hotprefix.base.clock import SystemClock
from hotprefix.tiers.disk import DiskStore
from tests.tiers.records import SCOPE, key_of, present, record

folder, file_limit = Path(sys.argv[1]), int(sys.argv[2])
if file_limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, file_limit))
store = DiskStore(folder, 64_000_000, SCOPE, SystemClock())
for number in range(300):
    store.put(record(number, 10_000))
stats = store.stats()
assert stats.dropped + stats.records == 300, stats
assert stats.dropped > 50, stats
assert stats.records > 20, stats
assert stats.bytes == sum(path.stat().st_size for path in folder.glob("*.kv"))
kept = present(store, range(300))
assert store.get([key_of(n) for n in kept]) == [record(n, 10_000) for n in kept]
store.delete([])
store.close()
store = DiskStore(folder, 64_000_000, SCOPE, SystemClock())
assert present(store, range(300)) == kept
store.close()
print(len(kept))
"""


def write_to_a_full_disk(folder: Path, file_limit: int = 0) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(folder), str(file_limit)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert result.returncode == 0, result.stderr


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """RLIMIT_FSIZE: the kernel refuses the write with EFBIG, part of it done."""
    write_to_a_full_disk(tmp_path, 1_000_500)


def test_a_full_disk(tmp_path: Path) -> None:
    """ENOSPC, on a file system of 1 MiB."""
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("only root may mount a small file system; RLIMIT_FSIZE is tested above")
    try:
        write_to_a_full_disk(tmp_path / "tier")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
