"""Records what a server is asked as a trace for `hotprefix replay`: block keys and lengths, no text."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from hotprefix.base.ids import BlockKey
from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.formats.own import OwnFormat, trace_line
from hotprefix.traces.lines import PACKED

MOST_WAITING = 100_000
"""Requests that wait for a slow disk; more are not recorded."""
_JOIN_SECONDS = 10.0
_HEAD_BYTES = 1 << 16
_LONGEST_LINE = 1 << 24

_Line = tuple[float, str, Sequence[BlockKey], tuple[int, int]]


class Recorder(Protocol):
    """Hears of every request that has ended. Calls must return at once and never raise."""

    def write(self, at: float, scope: str, keys: Sequence[BlockKey], tokens: tuple[int, int]) -> None:
        """A request came at `at` (seconds since 1970) with `keys` for the blocks of its prompt.

        The last of them may be partly filled. Equal blocks have equal keys within a scope. `tokens`
        are those of prompt and answer.
        """
        ...


class TraceRecording:
    """Appends to a trace file, on a thread of its own: who records never waits for the disk.

    What the disk does not take is lost, and `complain` gets a sentence the first time. Raises
    `BrokenTrace` if the file can't be opened, or holds anything but a trace with this block size.
    """

    def __init__(self, path: Path, block_size: int, complain: Callable[[str], None]) -> None:
        self._path = path
        self._block = block_size
        self._complain = complain
        self._file = _opened(path, block_size)
        self._lines: SimpleQueue[_Line | None] = SimpleQueue()
        self._has_failed = False
        self._thread = Thread(target=self._work, name="hotprefix-trace", daemon=True)
        self._thread.start()

    def write(self, at: float, scope: str, keys: Sequence[BlockKey], tokens: tuple[int, int]) -> None:
        """Record a request, soon."""
        if self._lines.qsize() < MOST_WAITING:
            self._lines.put((at, scope, keys, tokens))
        else:
            self._fail("the disk is too slow")

    def close(self) -> None:
        """Write what waits and close the file."""
        self._lines.put(None)
        self._thread.join(_JOIN_SECONDS)

    def _work(self) -> None:
        with self._file:
            while (line := self._lines.get()) is not None:
                try:
                    self._append(trace_line(self._block, *line))
                except OSError as error:
                    self._fail(error.strerror or str(error))

    def _append(self, line: bytes) -> None:
        """All of `line` or nothing: half of it would make the trace unreadable."""
        end = self._file.seek(0, os.SEEK_END)
        if self._file.write(line) != len(line):
            self._file.truncate(end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _fail(self, why: str) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._complain(f"requests are missing in {self._path}: {why}")


def _opened(path: Path, block_size: int) -> FileIO:
    if path.suffix in PACKED:
        raise BrokenTrace(f"{path}: a trace is recorded as plain text; name a .jsonl file.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = FileIO(path, "a+")
    except OSError as error:
        raise BrokenTrace(f"{path} can't be written: {error.strerror or error}.") from error
    try:
        _prepare(path, file, block_size)
    except BaseException:
        file.close()
        raise
    return file


def _prepare(path: Path, file: FileIO, block_size: int) -> None:
    """Refuse what is no such trace; cut off a last line that a crash has torn."""
    own = OwnFormat()
    file.seek(0)
    head = file.read(_HEAD_BYTES) or b""
    if not head:
        return
    if not own.accepts(path, head):
        raise BrokenTrace(f"{path} exists and is no trace of Hotprefix; name another file.")
    known = own.block_size(path)
    if known != block_size:
        raise BrokenTrace(
            f"{path} has blocks of {known} tokens, this server's have {block_size}; name another file."
        )
    end = file.seek(0, os.SEEK_END)
    size = min(end, _LONGEST_LINE)
    file.seek(end - size)
    tail = file.read(size) or b""
    file.truncate(end - size + tail.rfind(b"\n") + 1)
