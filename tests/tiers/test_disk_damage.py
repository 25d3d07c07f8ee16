"""Cut and flipped segment files, and kill -9: at most the damaged or unfinished record is lost."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hotprefix.base.clock import ManualClock, SystemClock
from hotprefix.tiers.base import Record
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.record import HEADER_BYTES
from hotprefix.tiers.segment import Segment, aligned
from tests.tiers import crashing_writer
from tests.tiers.records import SCOPE, key_of, present, record

COUNT = 12
SIZES = [0, 1, 100, 200, 700, 63, 64, 65, 300, 400, 500, 600]
ROOT = Path(__file__).resolve().parents[2]
NAME = f"segment-{0:016x}.kv"


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A segment of twelve records."""
    folder = tmp_path_factory.mktemp("image")
    store = DiskStore(folder, 1_000_000, SCOPE, ManualClock(1000.0))
    for number in range(COUNT):
        store.put(record(number, SIZES[number]))
    store.close()
    return (folder / NAME).read_bytes()


def starts() -> list[int]:
    """Where the records begin, and the end of the last."""
    offsets = [0]
    for size in SIZES:
        offsets.append(offsets[-1] + aligned(HEADER_BYTES + size))
    return offsets


def found_in(data: bytes, folder: Path) -> tuple[list[Record | None], DiskStore]:
    """What a store makes of such a file."""
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.kv"):
        path.unlink()
    (folder / NAME).write_bytes(data)
    store = DiskStore(folder, 1_000_000, SCOPE, ManualClock(1000.0))
    return store.get([key_of(number) for number in range(COUNT)]), store


def whole(lost: set[int]) -> list[Record | None]:
    return [None if number in lost else record(number, SIZES[number]) for number in range(COUNT)]


def test_the_image_is_what_it_should_be(image: bytes, tmp_path: Path) -> None:
    assert len(image) == starts()[-1]
    records, store = found_in(image, tmp_path)
    store.close()
    assert records == whole(set())


def test_cut_anywhere(image: bytes, tmp_path: Path) -> None:
    """At every border, beside it, and at random: all records before the cut are there, and later ones
    can be added."""
    draw = random.Random(1)
    cuts = {max(0, min(len(image), at + by)) for at in starts() for by in (-1, 0, 1, HEADER_BYTES)}
    cuts |= {draw.randrange(len(image)) for _ in range(60)}
    for cut in sorted(cuts):
        ends = [start + HEADER_BYTES + size for start, size in zip(starts(), SIZES, strict=False)]
        lost = {number for number, end in enumerate(ends) if end > cut}
        records, store = found_in(image[:cut], tmp_path)
        assert records == whole(lost), cut
        store.put(record(99, 300))
        store.close()
        store = DiskStore(tmp_path, 1_000_000, SCOPE, ManualClock(1000.0))
        assert store.get([key_of(99)]) == [record(99, 300)]
        assert present(store, range(COUNT)) == [n for n in range(COUNT) if n not in lost]
        store.close()


def test_flipped_anywhere(image: bytes, tmp_path: Path) -> None:
    """One bit costs at most the record that it is in."""
    draw = random.Random(2)
    spots = {start + draw.randrange(HEADER_BYTES) for start in starts()[:-1] for _ in range(4)}
    spots |= {draw.randrange(len(image)) for _ in range(60)}
    for spot in sorted(spots):
        data = bytearray(image)
        data[spot] ^= 1 << draw.randrange(8)
        records, store = found_in(bytes(data), tmp_path)
        stats = store.stats()
        store.close()
        hurt = max(number for number, start in enumerate(starts()) if start <= spot)
        is_padding = spot >= starts()[hurt] + HEADER_BYTES + SIZES[hurt]
        assert records == whole(set() if is_padding else {hurt}), spot
        assert stats.records == COUNT - (not is_padding)


def test_a_stretch_of_noise(image: bytes, tmp_path: Path) -> None:
    draw = random.Random(3)
    for _ in range(30):
        at, size = draw.randrange(len(image)), draw.randrange(1, 900)
        data = image[:at] + draw.randbytes(min(size, len(image) - at)) + image[at + size :]
        records, store = found_in(data, tmp_path)
        store.close()
        borders = zip(starts(), SIZES, strict=False)
        hit = {n for n, (s, z) in enumerate(borders) if s < at + size and at < s + HEADER_BYTES + z}
        assert all(found is None or found == whole(set())[n] for n, found in enumerate(records))
        assert {n for n, found in enumerate(records) if found is None} <= hit


def test_the_index_is_that_of_a_full_scan(image: bytes, tmp_path: Path) -> None:
    _, store = found_in(image, tmp_path)
    store.delete([key_of(3)])
    store.put(record(5, 10, version=1))
    index = {key: (place.offset, place.size) for key, place in store._index.items()}
    store.close()
    scanned: dict[bytes, tuple[int, int]] = {}
    for offset, header in Segment(tmp_path / NAME, 0).scan():
        scanned[header.key] = offset, header.size
        if header.is_tombstone:
            del scanned[header.key]
    assert index == scanned
    assert len(index) == COUNT - 1
    again = DiskStore(tmp_path, 1_000_000, SCOPE, ManualClock(1000.0))
    assert {key: (place.offset, place.size) for key, place in again._index.items()} == index
    again.close()


def test_files_of_others_are_left_alone(image: bytes, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="ascii")
    (tmp_path / "segment-1.kv").write_bytes(b"not named like ours")
    _, store = found_in(image, tmp_path / "tier")
    store.close()
    (tmp_path / "tier" / "notes.txt").write_text("mine", encoding="ascii")
    store = DiskStore(tmp_path / "tier", 1_000_000, SCOPE, ManualClock(1000.0))
    store.close()
    assert (tmp_path / "tier" / "notes.txt").read_text(encoding="ascii") == "mine"


def written_before_kill(folder: Path, limit: int, first: int, lines: int) -> int:
    """Run the writer, kill it after so many records; the last one that it said is in."""
    command = [sys.executable, "-m", "tests.tiers.crashing_writer", str(folder), str(limit), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        said: Iterator[str] = iter(process.stdout)
        assert next(said) == "ready\n"
        for _ in range(lines):
            next(said)
        process.kill()
        rest = process.stdout.read().splitlines()
    return int(rest[-1]) if rest else first + lines - 1


def test_kill_9(tmp_path: Path) -> None:
    """Again and again in the same folder, in the middle of writing and of moving retained records."""
    retained = range(crashing_writer.RETAINED)
    limit = 200 * crashing_writer.SIZE
    first = crashing_writer.RETAINED
    for lines in (1, 40, 333):
        last = written_before_kill(tmp_path, limit, first, lines)
        store = DiskStore(tmp_path, limit, SCOPE, SystemClock())
        recent = range(max(first, last - 40), last + 1)
        numbers = [*retained, *recent]
        expected = [record(number, crashing_writer.SIZE) for number in numbers]
        assert store.get([key_of(number) for number in numbers]) == expected
        everything = [key_of(number) for number in range(last + 10)]
        assert all(
            found is None or found == record(number, crashing_writer.SIZE)
            for number, found in enumerate(store.get(everything))
        )
        assert store.stats().damaged == 0
        store.close()
        first = last + 1
