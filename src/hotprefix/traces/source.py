"""A trace as a stream of requests in the order of their times, from one file, many, or a folder."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hotprefix.traces.batch import Batch
from hotprefix.traces.block_keys import number_of, prefix_hashes
from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.formats import TraceFormat, format_of
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.request import RawRequest, TraceRequest
from hotprefix.traces.seen_keys import SeenKeys

DEFAULT_BLOCK = 32
"""Tokens, for formats without blocks."""
_BATCH = 512
_LARGEST_BATCH = 1 << 17
"""Requests, and about as many blocks, whose keys are worked out at once."""
_REORDERED = 1024
"""Requests within which a file may be out of order: logs are written when a request ends."""


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """How to read a trace.

    `block`: tokens in a block, if the file does not say or says it wrongly. `shared_tokens`: for formats
    without identity, how many leading tokens all prompts of a scope have in common. `session_gap`: seconds
    between the starts of files that each begin at 0. `most`: requests to read at most.
    """

    block: int | None = None
    shared_tokens: int = 0
    session_gap: float = 0.0
    most: int | None = None


class TraceSource:
    """A trace that can be read again and again. Raises `BrokenTrace`, which names file and line."""

    def __init__(self, paths: Sequence[Path], options: TraceOptions | None = None) -> None:
        self.options = options if options is not None else TraceOptions()
        self.files = list(_files(paths))
        self._formats = {path: format_of(path) for path in self.files}
        self.names = sorted({known.name for known in self._formats.values()})
        self.has_identity = all(known.names_blocks for known in self._formats.values())
        self.block_size = self.options.block or self._block_size()

    @property
    def bytes(self) -> int:
        """Bytes of all files on disk."""
        return sum(path.stat().st_size for path in self.files)

    def requests(self, advance: Advance = nothing) -> Iterator[TraceRequest]:
        """All requests, the earliest first."""
        for batch in self.batches(advance):
            yield from batch.requests()

    def batches(self, advance: Advance = nothing) -> Iterator[Batch]:
        """The same, some hundreds at a time."""
        seen, serial = SeenKeys(), count(1)
        raw = islice(self._merged(advance), self.options.most)
        while batch := list(_batch(raw)):
            yield self._keyed(batch, seen, serial)

    def _block_size(self) -> int:
        """That of the first file of each format: they have to agree."""
        first: dict[TraceFormat, Path] = {}
        for path in self.files:
            first.setdefault(self._formats[path], path)
        sizes = {known.block_size(path) for known, path in first.items()}
        if len(sizes) > 1:
            raise BrokenTrace(
                f"{self.files[0]} and others have blocks of different sizes. Replay them one by one."
            )
        return next(iter(sizes)) or DEFAULT_BLOCK

    def _merged(self, advance: Advance) -> Iterator[RawRequest]:
        """The files' requests by time; a file is not opened before its first request can be due."""
        gap = self.options.session_gap
        if len(self.files) == 1:
            yield from _ordered(self._formats[self.files[0]].read(self.files[0], advance), self.files[0])
            return
        waiting: list[tuple[float, int, RawRequest, Iterator[RawRequest]]] = []
        pending = list(enumerate(self.files))[::-1]
        while waiting or pending:
            while pending and (not waiting or waiting[0][0] >= gap * pending[-1][0]):
                number, path = pending.pop()
                stream = _ordered(self._formats[path].read(path, advance), path)
                _push(waiting, number, stream, gap * number)
            if waiting:
                at, number, request, stream = heapq.heappop(waiting)
                yield RawRequest(at, request.scope, request.ids, request.input, request.output)
                _push(waiting, number, stream, gap * number)

    def _keyed(self, raw: list[RawRequest], seen: SeenKeys, serial: Iterator[int]) -> Batch:
        rows = [self._ids(request, serial) for request in raw]
        lengths = [len(row) for row in rows]
        hashes = prefix_hashes(rows, [number_of(request.scope) for request in raw])
        return Batch(
            [(request.at, request.scope, request.input, request.output) for request in raw],
            lengths,
            _leading(seen.note(hashes), lengths),
            hashes,
        )

    def _ids(self, request: RawRequest, serial: Iterator[int]) -> Sequence[int]:
        if request.ids is not None:
            return request.ids
        blocks = -(-request.input // self.block_size)
        shared = min(blocks, self.options.shared_tokens // self.block_size)
        own = next(serial)
        return [0] * shared + [own] * (blocks - shared)


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        if not path.exists():
            raise BrokenTrace(f"There is no file or folder {path}.")
        inside = [entry for entry in sorted(path.iterdir()) if entry.is_file()] if path.is_dir() else [path]
        if not inside:
            raise BrokenTrace(f"{path} is an empty folder.")
        yield from inside


def _batch(raw: Iterator[RawRequest]) -> Iterator[RawRequest]:
    blocks = 0
    for request in islice(raw, _BATCH):
        yield request
        blocks += len(request.ids) if request.ids is not None else 1
        if blocks >= _LARGEST_BATCH:
            return


def _ordered(stream: Iterator[RawRequest], path: Path) -> Iterator[RawRequest]:
    """Put right what is out of order by a little; raise `BrokenTrace` for more."""
    held: list[tuple[float, int, RawRequest]] = []
    last = float("-inf")
    for number, request in enumerate(stream):
        heapq.heappush(held, (request.at, number, request))
        if len(held) > _REORDERED:
            at, place, earliest = heapq.heappop(held)
            if at < last:
                raise BrokenTrace(
                    f"{path}: request {place + 1} is {last - at:.3f} s too late. Sort the file by time."
                )
            last = at
            yield earliest
    yield from (heapq.heappop(held)[2] for _ in range(len(held)))


def _push(
    waiting: list[tuple[float, int, RawRequest, Iterator[RawRequest]]],
    number: int,
    stream: Iterator[RawRequest],
    start: float,
) -> None:
    request = next(stream, None)
    if request is not None:
        heapq.heappush(waiting, (request.at + start, number, request, stream))


def _leading(seen: NDArray[np.bool_], lengths: Sequence[int]) -> list[int]:
    """How many of each row's first entries are true."""
    news = np.flatnonzero(~seen)
    ends = np.cumsum(lengths)
    starts = ends - lengths
    first = np.append(news, len(seen))[np.searchsorted(news, starts)]
    leading: list[int] = (np.minimum(first, ends) - starts).tolist()
    return leading
