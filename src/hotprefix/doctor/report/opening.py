"""Log files of any form: what form it is, and the documents in it, one after the other."""

from __future__ import annotations

import gzip
import json
import re
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
_SOMETHING = re.compile(r"\S")


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
    if path.is_fifo() or path.is_char_device():
        raise UnreadableFile(
            f"{path} is no file but a stream, and logs are read more than once. Write it to a file first."
        )
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
                text = line.removeprefix(_BOM) if number == 1 else line
                if text.isspace() or not text:
                    continue
                try:
                    document = _mended(text, f"{path}:{number}:{error.colno}")
                except UnreadableFile:
                    if not line.endswith(b"\n"):
                        return
                    raise
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
    except orjson.JSONDecodeError:
        return _mended(data, f"{path}:{number}")


def _mended(data: bytes, place: str) -> Any:
    """What is JSON for most writers: with NaN, or halves of characters where UTF-16 texts were cut."""
    try:
        return _without_halves(json.loads(data, parse_constant=_nothing))
    except json.JSONDecodeError as error:
        raise UnreadableFile(f"{place} is no JSON: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{place} is no JSON: {error}.") from error


def _without_halves(document: Any) -> Any:
    return orjson.loads(json.dumps(document, ensure_ascii=False).encode("utf-8", "replace"))


def _nothing(constant: str) -> None:
    """In place of NaN and Infinity."""


def _whole(path: Path) -> Iterator[tuple[int, Any]]:
    with opened(path) as stream:
        data = stream.read(_WHOLE_LIMIT + 1)
    if len(data) > _WHOLE_LIMIT:
        raise UnreadableFile(
            f"{path} is one JSON document of more than {_WHOLE_LIMIT >> 20} MiB. Write one document a line, "
            f"for example with: jq -c '.[]' {path}"
        )
    try:
        document = orjson.loads(data.removeprefix(_BOM))
    except orjson.JSONDecodeError:
        yield from _one_after_the_other(data, path)
        return
    rows = document if isinstance(document, list) else [document]
    if isinstance(document, dict) and isinstance(document.get("data"), list) and "object" not in document:
        rows = document["data"]  # a page of an HTTP API
    yield from ((1, row) for row in rows)


def _one_after_the_other(data: bytes, path: Path) -> Iterator[tuple[int, Any]]:
    """Documents of several lines each, as OpenTelemetry's console exporter prints them."""
    decoder, line, end = json.JSONDecoder(parse_constant=_nothing), 1, 0
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line += data.count(b"\n", 0, error.start)
        raise UnreadableFile(f"{path}:{line} is no UTF-8 text.") from error
    try:
        while start := _SOMETHING.search(text, end):
            line += text.count("\n", end, start.start())
            document, end = decoder.raw_decode(text, start.start())
            rows = _without_halves(document)
            yield from ((line, row) for row in (rows if isinstance(rows, list) else [rows]))
            line += text.count("\n", start.start(), end)
    except json.JSONDecodeError as error:
        raise UnreadableFile(f"{path}:{error.lineno}:{error.colno} is no JSON: {error.msg}.") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{path} is no JSON: {error}.") from error
