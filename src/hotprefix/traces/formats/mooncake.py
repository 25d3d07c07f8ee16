"""Mooncake's traces (Qin et al., FAST '25) and files of the same shape, such as LMBench's.

One JSON object a line: `timestamp`, `input_length`, `output_length`, `hash_ids`. Numbers are
milliseconds; text, or a number too large for that, is nanoseconds. The block size is nowhere in
the file: it follows from lengths and numbers of ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any

from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.fields import count, ids, required
from hotprefix.traces.lines import Advance, json_lines
from hotprefix.traces.request import RawRequest

_LOOKED_AT = 200
_NANOSECONDS_FROM = 1e14
_LARGEST = 1 << 16


class MooncakeFormat:
    """See the module."""

    name = "mooncake"
    names_blocks = True

    def accepts(self, path: Path, head: bytes) -> bool:
        first = head.lstrip()[:1]
        return first == b"{" and b'"hash_ids"' in head and b'"input_length"' in head

    def block_size(self, path: Path) -> int | None:
        pairs = [
            (
                count(record, "input_length", f"{path}:{number}"),
                len(ids(record, "hash_ids", f"{path}:{number}")),
            )
            for number, record in islice(json_lines(path), _LOOKED_AT)
        ]
        named = [(tokens, blocks) for tokens, blocks in pairs if blocks]
        rounded_up = [(-(-t // n), (t - 1) // (n - 1) if n > 1 else _LARGEST) for t, n in named]
        rounded_down = [(t // (n + 1) + 1, t // n) for t, n in named]
        for ranges in (rounded_up, rounded_down):
            least, most = (
                max((low for low, _ in ranges), default=1),
                min((high for _, high in ranges), default=0),
            )
            if 0 < least <= most:
                return _roundest(least, most)
        raise BrokenTrace(f"{path}: no block size fits its lengths and ids. Give it with --trace-block.")

    def read(self, path: Path, advance: Advance) -> Iterator[RawRequest]:
        for number, record in json_lines(path, advance):
            place = f"{path}:{number}"
            yield RawRequest(
                _seconds(record, place),
                "",
                ids(record, "hash_ids", place),
                count(record, "input_length", place),
                count(record, "output_length", place),
            )


def _seconds(record: dict[str, Any], place: str) -> float:
    value = required(record, "timestamp", place)
    try:
        number = float(value)
        if not isfinite(number):
            raise ValueError(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise BrokenTrace(f"{place}: 'timestamp' is {value!r}; it has to be a number.") from error
    if isinstance(value, str) or number >= _NANOSECONDS_FROM:
        return number / 1e9
    return number / 1e3


def _roundest(least: int, most: int) -> int:
    """The number in a range that the largest power of two divides."""
    step = 1 << most.bit_length()
    while step > 1 and most // step * step < least:
        step //= 2
    return most // step * step
