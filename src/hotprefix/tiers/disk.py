"""The disk tier: a log of segment files with an index in memory.

Records are only ever appended. The oldest segment makes room: what of it was read since it was
written, or is retained, is appended again, then its file goes. At the start the index is rebuilt from
the records' headers. Nothing is written without a checksum, so a torn or flipped record is a miss.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Sequence
from pathlib import Path
from shutil import disk_usage
from threading import Lock

from hotprefix.base.clock import Clock
from hotprefix.base.ids import BlockKey
from hotprefix.tiers.base import Record, StoreError, StoreStats
from hotprefix.tiers.cipher import Cipher
from hotprefix.tiers.folder_lock import FolderLock
from hotprefix.tiers.record import HEADER_BYTES, DamagedRecord, RecordFormat, RecordHeader, read_header
from hotprefix.tiers.segment import Place, Segment, aligned, sync_folder

USUAL_SEGMENT = 256 << 20
LEAST_SEGMENTS = 8
MOST_SEGMENTS = 256
"""Every segment is an open file."""
SYNC_SECONDS = 10.0
"""While records come, the medium has to have them no later than this."""
_LARGEST_SHARE = 4
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_NAME = re.compile(r"segment-([0-9a-f]{16})\.kv")


class DiskStore:
    """Records of one scope in `folder`, which never takes more than `limit` bytes of segment files.

    Room for one segment stays free, so that the oldest can be rewritten before it goes.
    Raises `FolderInUse` if another process has the folder, `StoreError` if it can't be used.
    """

    def __init__(
        self, folder: Path, limit: int, scope: bytes, clock: Clock, cipher: Cipher | None = None
    ) -> None:
        self._folder = folder
        self._limit = limit
        self._scope = scope
        self._clock = clock
        self._format = RecordFormat(cipher)
        self._segment_bytes = segment_bytes(limit)
        self._writing = Lock()  # whoever changes files; taken before the other
        self._lock = Lock()  # whoever looks at the fields below
        self._index: dict[BlockKey, Place] = {}
        self._segments: list[Segment] = []
        self._dropped = 0
        self._damaged = 0
        self._is_closed = False
        self._is_dirty = False
        self._synced_at = clock.now()
        self._owner = FolderLock(folder)
        try:
            self._recover()
        except OSError as error:
            self._owner.release()
            raise StoreError(
                f"the disk tier in {folder} can't be opened: {error.filename or folder}: {error.strerror}. "
                "Give the files to the user that the server runs as, or delete the folder: it is a cache."
            ) from error

    @property
    def name(self) -> str:
        return "disk"

    @property
    def is_indexed(self) -> bool:
        return True

    def contains(self, keys: Sequence[BlockKey]) -> list[bool]:
        with self._lock:
            return [key in self._index for key in keys]

    def get(self, keys: Sequence[BlockKey]) -> list[Record | None]:
        with self._lock:
            self._check_open()
            places = [self._index.get(key) for key in keys]
        try:
            for place in places:
                if place is not None:
                    place.segment.expect(place.offset, place.size)
            return [
                None if place is None else self._read(key, place)
                for key, place in zip(keys, places, strict=True)
            ]
        except OSError as error:
            raise _failed("read", error) from error

    def put(self, record: Record) -> bool:
        if record.scope != self._scope:
            return self._drop()
        header, body = self._format.encode(record)
        size = len(header) + len(body)
        if aligned(size) > self._limit // _LARGEST_SHARE:
            return self._drop()
        with self._writing:
            self._check_open()
            try:
                self._make_room(aligned(size))
                segment, offset = self._append([header, body])
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise _failed("written", error) from error
                return self._drop()
            with self._lock:
                self._enter(record.key, Place(segment, offset, size))
            if self._clock.now() - self._synced_at >= SYNC_SECONDS:
                self._sync()
        return True

    def retain(self, keys: Sequence[BlockKey], until: float) -> None:
        with self._lock:
            for key in keys:
                if (place := self._index.get(key)) is not None:
                    place.until = until

    def delete(self, keys: Sequence[BlockKey]) -> None:
        """Also for the next start: a small record says so. Where it can't be written, `StoreError`."""
        with self._writing:
            self._check_open()
            with self._lock:
                known = [key for key in dict.fromkeys(keys) if self._forget(key)]
            try:
                for key in known:
                    self._make_room(aligned(HEADER_BYTES))
                    self._append([self._format.tombstone(key, self._scope)])
            except OSError as error:
                raise _failed("written", error) from error

    def stats(self) -> StoreStats:
        with self._lock:
            return StoreStats(len(self._index), self._total(), self._limit, self._dropped, self._damaged)

    def sync(self) -> None:
        with self._writing:
            if not self._is_closed:
                self._sync()

    def close(self) -> None:
        """Wait for the medium and give the folder back."""
        with self._writing:
            if self._is_closed:
                return
            try:
                self._sync()
            finally:
                with self._lock:
                    self._is_closed = True
                    self._index.clear()
                    for segment in self._segments:
                        segment.live.clear()
                    self._segments.clear()
                self._owner.release()

    def _check_open(self) -> None:
        if self._is_closed:
            raise StoreError("the disk tier is closed")

    def _drop(self) -> bool:
        with self._lock:
            self._dropped += 1
        return False

    def _total(self) -> int:
        return sum(segment.size for segment in self._segments)

    # Reading

    def _read(self, key: BlockKey, place: Place) -> Record | None:
        header = read_header(place.segment.read(place.offset, HEADER_BYTES))
        if header is not None and header.key == key and header.scope == self._scope:
            try:
                record = self._format.decode(
                    header, place.segment.read(place.offset + HEADER_BYTES, header.length)
                )
            except DamagedRecord:
                pass
            else:
                place.is_hot = True
                return record
        with self._lock:
            if self._index.get(key) is place:
                self._forget(key)
                self._damaged += 1
        return None

    # Writing: with `_writing` held

    def _enter(self, key: BlockKey, place: Place) -> None:
        self._forget(key)
        self._index[key] = place
        place.segment.live[key] = place

    def _forget(self, key: BlockKey) -> bool:
        place = self._index.pop(key, None)
        if place is None:
            return False
        del place.segment.live[key]
        return True

    def _append(self, parts: Sequence[bytes]) -> tuple[Segment, int]:
        self._is_dirty = True
        size = aligned(sum(len(part) for part in parts))
        segment = self._segments[-1] if self._segments else None
        if segment is None or (segment.size and segment.size + size > self._segment_bytes):
            segment = self._begin_segment()
        return segment, segment.append(parts)

    def _sync(self) -> None:
        """All segments but the last were synced when they were complete."""
        self._synced_at = self._clock.now()
        if self._is_dirty and self._segments:
            try:
                self._segments[-1].sync()
            except OSError as error:
                raise _failed("written", error) from error
        self._is_dirty = False

    def _begin_segment(self) -> Segment:
        number = 0
        if self._segments:
            self._segments[-1].sync()
            number = self._segments[-1].number + 1
        segment = Segment.create(self._folder / f"segment-{number:016x}.kv", number)
        try:
            sync_folder(self._folder)
        except OSError:
            segment.unlink()  # else its name would be taken for ever
            raise
        with self._lock:
            self._segments.append(segment)
        return segment

    def _make_room(self, need: int) -> None:
        """Until `need` bytes fit beside the room for rewriting a segment. Raises `OSError`."""
        rewritten = 0
        while self._segments and (
            self._total() + need + self._reserve(need) > self._limit or self._is_crowded(need)
        ):
            # Were more than half of all records moved on again and again, little else would be written.
            moved = max(rewritten, self._retained())
            rewritten += self._compact(honour_retained=2 * moved < self._total())

    def _is_crowded(self, need: int) -> bool:
        """Whether another segment would leave others on the disk less room than one takes."""
        if len(self._segments) < 2 or self._segments[-1].size + need <= self._segment_bytes:
            return False
        return disk_usage(self._folder).free < 2 * self._segment_bytes

    def _retained(self) -> int:
        """Bytes of all records that somebody wants kept."""
        now = self._clock.wall()
        with self._lock:
            return sum(aligned(place.size) for place in self._index.values() if place.until > now)

    def _reserve(self, need: int) -> int:
        return max(self._segment_bytes, need, *(segment.size for segment in self._segments))

    def _compact(self, *, honour_retained: bool) -> int:
        """Remove the oldest segment; the bytes of it that were appended again."""
        oldest = self._segments[0]
        if len(self._segments) == 1:
            self._begin_segment()
        rewritten = 0
        for key, place in self._survivors(oldest, honour_retained=honour_retained):
            data = _read_whole(oldest, place)
            if data is None:
                continue
            try:
                segment, offset = self._append([data])
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                break
            rewritten += aligned(place.size)
            with self._lock:
                if self._index.get(key) is place:
                    self._enter(key, Place(segment, offset, place.size, until=place.until))
        with self._lock:
            for key in list(oldest.live):
                self._forget(key)
                self._dropped += 1
            self._segments.remove(oldest)
        oldest.unlink()
        return rewritten

    def _survivors(self, oldest: Segment, *, honour_retained: bool) -> list[tuple[BlockKey, Place]]:
        """What is worth moving on: all that is retained, then up to half a segment of what was read."""
        now = self._clock.wall()
        room = oldest.size // 2
        chosen = []
        with self._lock:
            for key, place in oldest.live.items():
                retained = honour_retained and place.until > now
                if retained or (place.is_hot and room >= place.size):
                    chosen.append((key, place))
                    room -= 0 if retained else place.size
        return chosen

    # Starting

    def _recover(self) -> None:
        """Read all headers. Cuts every file behind its last whole record."""
        found = sorted(
            (match[1], path) for path in self._folder.iterdir() if (match := _NAME.fullmatch(path.name))
        )
        for digits, path in found:
            segment = Segment(path, int(digits, 16))
            end = 0
            for offset, header in segment.scan():
                end = offset + aligned(header.size)
                self._index_record(segment, offset, header)
            segment.cut(end)
            self._segments.append(segment)
        while self._segments and (
            not self._segments[0].size or self._total() + self._reserve(0) > self._limit
        ):
            oldest = self._segments.pop(0)
            for key in list(oldest.live):
                self._forget(key)
                self._dropped += 1
            oldest.unlink()

    def _index_record(self, segment: Segment, offset: int, header: RecordHeader) -> None:
        """Records of other scopes and keys stay where they are until their segment goes."""
        if header.scope != self._scope or not self._format.reads(header):
            return
        if header.is_tombstone:
            self._forget(header.key)
        else:
            self._enter(header.key, Place(segment, offset, header.size))


def segment_bytes(limit: int) -> int:
    """How large a segment may become in a tier of `limit` bytes, unless one record is larger."""
    return max(1, min(limit // LEAST_SEGMENTS, max(USUAL_SEGMENT, limit // MOST_SEGMENTS)))


def _read_whole(segment: Segment, place: Place) -> bytes | None:
    """A record's bytes; None where the medium fails or the file is too short: then it has to go."""
    try:
        data = segment.read(place.offset, place.size)
    except OSError:
        return None
    return data if len(data) == place.size else None


def _failed(verb: str, error: OSError) -> StoreError:
    return StoreError(f"the disk tier can't be {verb}: {error.strerror}")
