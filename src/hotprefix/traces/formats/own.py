"""Hotprefix's own traces: JSON lines with the keys of the prompt's blocks.

`{"at": seconds, "scope": "…", "block": 32, "input": n, "output": m, "keys": ["hex", …]}`; `keys` are chained.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import orjson

from hotprefix.base.ids import BlockKey
from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.fields import count, required, seconds
from hotprefix.traces.lines import Advance, json_lines
from hotprefix.traces.request import RawRequest

_FEWEST_DIGITS = 16


class OwnFormat:
    """See the module. Of a key the first 64 bits are looked at."""

    name = "hotprefix"
    names_blocks = True

    def accepts(self, path: Path, head: bytes) -> bool:
        return head.lstrip()[:1] == b"{" and b'"keys"' in head and b'"block"' in head

    def block_size(self, path: Path) -> int | None:
        for number, record in json_lines(path):
            size = count(record, "block", f"{path}:{number}")
            if size < 1:
                raise BrokenTrace(f"{path}:{number}: 'block' is {size}.")
            return size
        return None

    def read(self, path: Path, advance: Advance) -> Iterator[RawRequest]:
        size = self.block_size(path)
        for number, record in json_lines(path, advance):
            place = f"{path}:{number}"
            if count(record, "block", place) != size:
                raise BrokenTrace(f"{place} has blocks of another size than the first line.")
            yield RawRequest(
                seconds(record, "at", place),
                str(record.get("scope", "")),
                [_number(key, place) for key in required(record, "keys", place)],
                count(record, "input", place),
                count(record, "output", place),
            )


def trace_line(
    block_size: int, at: float, scope: str, keys: Sequence[BlockKey], tokens: tuple[int, int]
) -> bytes:
    """A request as a line of such a file; `tokens` are those of prompt and answer, `at` is in seconds."""
    line = {
        "at": at,
        "scope": scope,
        "block": block_size,
        "input": tokens[0],
        "output": tokens[1],
        "keys": [key[:8].hex() for key in keys],
    }
    return orjson.dumps(line) + b"\n"


def _number(key: object, place: str) -> int:
    try:
        if not isinstance(key, str) or len(key) < _FEWEST_DIGITS:
            raise ValueError
        return int(key[:_FEWEST_DIGITS], 16)
    except ValueError as error:
        raise BrokenTrace(
            f"{place}: a key is {key!r}; it has to be {_FEWEST_DIGITS} hex digits or more."
        ) from error
