"""Log files of any form: what form it is, and the documents in it, one after the other."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from io import BufferedReader
from pathlib import Path
from typing import IO, Any, cast

import orjson

from hotprefix.doctor.reading import UnreadableFile

_HEAD = 65_536
_WHOLE_LIMIT = 256 << 20
_SSE = (b"data:", b"event:", b"id:", b":HTTP")
_BOM = b"\xef\xbb\xbf"


class Form(StrEnum):
    """How a file is written down, whatever it says."""

    SQLITE = "sqlite"
    PARQUET = "parquet"
    CSV = "csv"
    LINES = "json lines"
    WHOLE = "json"
    SSE = "server-sent events"


def form_of(path: Path) -> Form:
    """By the first bytes, for names lie. Raises UnreadableFile."""
    with opened(path) as stream:
        head = stream.read(_HEAD).removeprefix(_BOM)
    if head.startswith(b"SQLite format 3\0"):
        return Form.SQLITE
    if head.startswith(b"PAR1"):
        return Form.PARQUET
    start = head.lstrip()
    if not start:
        raise UnreadableFile(f"{path} is empty.")
    if start.startswith(_SSE):
        return Form.SSE
    if start[:1] in (b"{", b"["):
        return _json_form(start)
    first = start.split(b"\n", 1)[0]
    if b"," in first and b"\0" not in first and not first.startswith(b"<"):
        return Form.CSV
    raise UnreadableFile(
        f"{path}:1 is neither JSON, nor CSV, nor Parquet, nor a SQLite file. Give a log that docs/REPORT.md "
        "lists."
    )


def _json_form(start: bytes) -> Form:
    first, _, rest = start.partition(b"\n")
    try:
        orjson.loads(first)
    except orjson.JSONDecodeError:
        # A line may be longer than what was looked at; one that opens a pretty-printed document is short.
        return Form.LINES if not rest and len(start) > _HEAD // 2 and start[:1] == b"{" else Form.WHOLE
    return Form.LINES


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked if it is gzipped."""
    try:
        with path.open("rb") as raw:
            if _is_gzip(raw):
                with gzip.open(raw) as unpacked:
                    yield cast("IO[bytes]", unpacked)
            else:
                yield raw
    except IsADirectoryError as error:
        raise UnreadableFile(f"{path} is a folder. Name the files in it.") from error
    except FileNotFoundError as error:
        raise UnreadableFile(f"There is no file {path}.") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise UnreadableFile(f"{path} is no whole gzip file: {error}.") from error
    except OSError as error:
        raise UnreadableFile(f"{path} can't be read: {error.strerror or error}.") from error


def is_gzipped(path: Path) -> bool:
    """Whether a file is packed."""
    with path.open("rb") as raw:
        return _is_gzip(raw)


def _is_gzip(raw: BufferedReader) -> bool:
    return raw.peek(2)[:2] == b"\x1f\x8b"


def documents(path: Path, form: Form) -> Iterator[tuple[int, Any]]:
    """Every JSON document with the line it begins at; elements of a top-level array count as documents.

    A last line without an end may be one that is still being written: it is left out if it is no JSON.
    """
    match form:
        case Form.LINES:
            yield from _lines(path)
        case Form.SSE:
            yield from _events(path)
        case _:
            yield from _whole(path)


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    with opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            try:
                document = orjson.loads(line)
            except orjson.JSONDecodeError as error:
                text = line.removeprefix(_BOM).strip() if number == 1 else line.strip()
                if not text:
                    continue
                if number == 1 and line.startswith(_BOM):
                    document = _loaded(text, path, number)
                elif not line.endswith(b"\n"):
                    return
                else:
                    raise UnreadableFile(f"{path}:{number}:{error.colno} is no JSON: {error.msg}.") from error
            if isinstance(document, list):
                yield from ((number, one) for one in document)
            else:
                yield number, document


def _events(path: Path) -> Iterator[tuple[int, Any]]:
    with opened(path) as stream:
        for number, line in enumerate(stream, start=1):
            if line.startswith(b"data:"):
                data = line[5:].strip()
                if data[:1] == b"{":
                    yield number, _loaded(data, path, number)


def _loaded(data: bytes, path: Path, number: int) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UnreadableFile(f"{path}:{number} is no JSON: {error.msg}.") from error


def _whole(path: Path) -> Iterator[tuple[int, Any]]:
    with opened(path) as stream:
        data = stream.read(_WHOLE_LIMIT + 1)
    if len(data) > _WHOLE_LIMIT:
        raise UnreadableFile(
            f"{path} is one JSON document of more than {_WHOLE_LIMIT >> 20} MiB. Write one document a line, "
            f"for example with: jq -c '.[]' {path}"
        )
    data = data.removeprefix(_BOM)
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        raise UnreadableFile(f"{path}:{error.lineno}:{error.colno} is no JSON: {error.msg}.") from error
    rows = document if isinstance(document, list) else [document]
    if isinstance(document, dict) and isinstance(document.get("data"), list) and "object" not in document:
        rows = document["data"]  # a page of an HTTP API
    yield from ((1, row) for row in rows)
