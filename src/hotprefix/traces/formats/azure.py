"""Azure's public inference traces: a CSV of times and lengths, without any identity of the text."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.fields import count, moment, required
from hotprefix.traces.lines import Advance, numbered_lines
from hotprefix.traces.request import RawRequest

_COLUMNS = (b"TIMESTAMP", b"ContextTokens", b"GeneratedTokens")


class AzureFormat:
    """See the module."""

    name = "azure"
    names_blocks = False

    def accepts(self, path: Path, head: bytes) -> bool:
        first = head.partition(b"\n")[0]
        return all(column in first for column in _COLUMNS)

    def block_size(self, path: Path) -> int | None:
        return None

    def read(self, path: Path, advance: Advance) -> Iterator[RawRequest]:
        for place, row in csv_rows(path, advance):
            at = moment(required(row, "TIMESTAMP", place), place)
            yield RawRequest(
                at, "", None, count(row, "ContextTokens", place), count(row, "GeneratedTokens", place)
            )


def csv_rows(path: Path, advance: Advance) -> Iterator[tuple[str, dict[str, str]]]:
    """Every row below the heading, with its place for messages. Raises `BrokenTrace`."""
    lines = numbered_lines(path, advance)
    number = 0

    def texts() -> Iterator[str]:
        nonlocal number
        for found, line in lines:
            number = found
            try:
                yield line.decode("utf-8-sig" if found == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise BrokenTrace(f"{path}:{number} is no UTF-8.") from error

    reader = csv.DictReader(texts())
    try:
        for row in reader:
            place = f"{path}:{number}"
            if None in row.values() or None in row:
                raise BrokenTrace(f"{place} has more or fewer columns than the heading.")
            yield place, row
    except csv.Error as error:
        raise BrokenTrace(f"{path}:{number} is no CSV: {error}.") from error
