"""One file of the disk tier: records one behind the other, only ever added to or cut at the end."""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hotprefix.base.ids import BlockKey
from hotprefix.tiers.record import HEADER_BYTES, MAGIC, RecordHeader, read_header

ALIGN = 64
"""Records begin at multiples of it, so that a scan finds the next one behind a damaged header."""
_CHUNK = 1 << 20


def aligned(size: int) -> int:
    """`size`, rounded up to where the next record may begin."""
    return -(-size // ALIGN) * ALIGN


class Segment:
    """An open segment file. Its descriptor is closed when nobody reads from it any more.

    `size` is where the next record goes. `live` are the records in it that the index names.
    """

    def __init__(self, path: Path, number: int, flags: int = 0) -> None:
        self.path = path
        self.number = number
        self._fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | flags, 0o600)
        weakref.finalize(self, os.close, self._fd)
        self.size = os.fstat(self._fd).st_size
        self.live: dict[BlockKey, Place] = {}

    @classmethod
    def create(cls, path: Path, number: int) -> Segment:
        """A new, empty one."""
        return cls(path, number, os.O_CREAT | os.O_EXCL)

    def append(self, parts: Sequence[bytes]) -> int:
        """Write a record at the end; its offset. On `OSError` the segment is as it was before."""
        offset = self.size
        written = sum(len(part) for part in parts)
        data = [*parts, bytes(aligned(written) - written)]
        try:
            _write_all(self._fd, data, offset)
        except OSError:
            os.ftruncate(self._fd, offset)
            raise
        self.size = offset + aligned(written)
        return offset

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file; fewer if it ends before."""
        return os.pread(self._fd, size, offset)

    def expect(self, offset: int, size: int) -> None:
        """Let the kernel begin to read what is going to be asked for."""
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._fd, offset, size, os.POSIX_FADV_WILLNEED)

    def scan(self) -> Iterator[tuple[int, RecordHeader]]:
        """Whole records with a sound header, and where they are. Payloads are not read.

        Behind a damaged header the search goes on, so one damaged record costs no other.
        """
        offset = 0
        while offset + HEADER_BYTES <= self.size:
            header = read_header(self.read(offset, HEADER_BYTES))
            if header is not None and offset + header.size <= self.size:
                yield offset, header
                offset += aligned(header.size)
            else:
                offset = self._next_magic(offset + ALIGN)

    def cut(self, size: int) -> None:
        """Make it end at `size`."""
        if size != self.size:
            # It grows where only the padding of the last record is missing.
            os.ftruncate(self._fd, size)
        self.size = size

    def sync(self) -> None:
        """Wait until the medium has it."""
        _sync(self._fd)

    def unlink(self) -> None:
        """Remove the file; who reads from it still can."""
        self.path.unlink(missing_ok=True)

    def _next_magic(self, offset: int) -> int:
        """Where a header may begin, at or behind `offset`; the end if nowhere."""
        while offset < self.size:
            chunk = self.read(offset, _CHUNK)
            at = chunk.find(MAGIC)
            while at >= 0 and at % ALIGN:
                at = chunk.find(MAGIC, at + 1)
            if at >= 0:
                return offset + at
            # Chunks are multiples of ALIGN, so no aligned magic lies across two.
            offset += _CHUNK
        return self.size


@dataclass(slots=True, eq=False)
class Place:
    """Where a record is: `size` bytes at `offset`. `is_hot`: it was read since it was written there;
    `until`: somebody wants it that long (wall clock)."""

    segment: Segment
    offset: int
    size: int
    is_hot: bool = False
    until: float = 0.0


def sync_folder(folder: Path) -> None:
    """Wait until the medium has the names in a folder, where its file system can promise that."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


def _sync(fd: int) -> None:
    # macOS has no fdatasync.
    getattr(os, "fdatasync", os.fsync)(fd)


def _write_all(fd: int, parts: Sequence[bytes], offset: int) -> None:
    """Write everything, also where the kernel takes it in pieces. Raises `OSError`."""
    views = [memoryview(part) for part in parts if part]
    while views:
        written = os.pwritev(fd, views, offset)
        offset += written
        while views and written >= len(views[0]):
            written -= len(views.pop(0))
        if views:
            views[0] = views[0][written:]
