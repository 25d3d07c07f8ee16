"""How far a download is, for people."""

from __future__ import annotations

import sys
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)


class DownloadProgress(Protocol):
    """Told about one download at a time."""

    def start(self, label: str, total: int) -> None:
        """A download of `total` bytes begins."""
        ...

    def reached(self, done: int) -> None:
        """`done` bytes are here; may go back when a server can't resume."""
        ...

    def finish(self) -> None:
        """The download ended, well or not."""
        ...


class SilentProgress:
    """Says nothing."""

    def start(self, label: str, total: int) -> None:
        pass

    def reached(self, done: int) -> None:
        pass

    def finish(self) -> None:
        pass


class PlainProgress:
    """A line per tenth, for logs and pipes."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._label, self._total, self._tenth = "", 0, 0

    def start(self, label: str, total: int) -> None:
        self._label, self._total, self._tenth = label, total, 0
        print(f"Fetching {label} ({total / 1e6:.1f} MB)", file=self._out, flush=True)

    def reached(self, done: int) -> None:
        tenth = done * 10 // self._total if self._total else 0
        if tenth > self._tenth:
            print(f"  {self._label}: {tenth * 10} %", file=self._out, flush=True)
        self._tenth = tenth

    def finish(self) -> None:
        pass


class BarProgress:
    """A moving bar, for terminals."""

    def __init__(self, out: TextIO) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
        self._bar = Progress(*columns, TimeRemainingColumn(), console=Console(file=out))
        self._task: TaskID | None = None

    def start(self, label: str, total: int) -> None:
        self._bar.start()
        self._task = self._bar.add_task(label, total=total)

    def reached(self, done: int) -> None:
        if self._task is not None:
            self._bar.update(self._task, completed=done)

    def finish(self) -> None:
        self._bar.stop()


def progress_for(out: TextIO | None = None) -> DownloadProgress:
    """A bar where `out` (standard error by default) is a terminal, lines elsewhere."""
    out = out or sys.stderr
    return BarProgress(out) if out.isatty() else PlainProgress(out)
