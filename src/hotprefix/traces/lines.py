"""The lines of a file, plain or compressed, with their numbers."""

from __future__ import annotations

import gzip
import lzma
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

import orjson

from hotprefix.traces.errors import BrokenTrace

Advance = Callable[[int], None]
"""So many more bytes of the file, as it lies on disk, are read."""
HEAD_BYTES = 1 << 16
PACKED = (".gz", ".xz")
_EVERY = 256


def nothing(size: int) -> None:
    """Nobody watches."""


def plain_name(path: Path) -> str:
    """The file's name without the ending of a compression."""
    return path.name.removesuffix(path.suffix) if path.suffix in PACKED else path.name


def read_head(path: Path) -> bytes:
    """The first bytes of a file, to tell its format by."""
    with path.open("rb") as raw:
        return _told(path, lambda: _unpacked(path, raw).read(HEAD_BYTES)).removeprefix(BOM_UTF8)


def read_whole(path: Path) -> bytes:
    """All of a file."""
    with path.open("rb") as raw:
        return _told(path, lambda: _unpacked(path, raw).read()).removeprefix(BOM_UTF8)


def numbered_lines(path: Path, advance: Advance = nothing) -> Iterator[tuple[int, bytes]]:
    """Every line that is not blank, with its number from 1 on."""
    with path.open("rb") as raw:
        stream, told, number = _unpacked(path, raw), 0, 0
        while line := _told(path, stream.readline):
            number += 1
            if number == 1:
                line = line.removeprefix(BOM_UTF8)
            if number % _EVERY == 0:
                place = raw.tell()
                advance(place - told)
                told = place
            if not line.isspace():
                yield number, line
        advance(raw.tell() - told)


def json_lines(path: Path, advance: Advance = nothing) -> Iterator[tuple[int, dict[str, Any]]]:
    """Every line as a JSON object. Raises `BrokenTrace`."""
    for number, line in numbered_lines(path, advance):
        try:
            content = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise BrokenTrace(f"{path}:{number} is no JSON: {error}.") from error
        if not isinstance(content, dict):
            raise BrokenTrace(f"{path}:{number} is no JSON object.")
        yield number, content


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    match path.suffix:
        case ".gz":
            return cast("IO[bytes]", gzip.open(raw))
        case ".xz":
            return lzma.open(raw)
        case _:
            return raw


def _told(path: Path, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except (lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BrokenTrace(f"{path} can't be unpacked: {error}. Fetch or pack it again.") from error
