"""What a trace format does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from hotprefix.traces.lines import Advance
from hotprefix.traces.request import RawRequest


class TraceFormat(Protocol):
    """Reads files of one kind, one request after the other."""

    @property
    def name(self) -> str: ...

    @property
    def names_blocks(self) -> bool:
        """Whether files tell which blocks are equal, not only lengths."""
        ...

    def accepts(self, path: Path, head: bytes) -> bool:
        """Whether a file looks like this format; `head` is how it begins, unpacked."""
        ...

    def block_size(self, path: Path) -> int | None:
        """Tokens in a block; None if the format names no blocks. Raises `BrokenTrace`."""
        ...

    def read(self, path: Path, advance: Advance) -> Iterator[RawRequest]:
        """All requests of a file. Raises `BrokenTrace`."""
        ...
