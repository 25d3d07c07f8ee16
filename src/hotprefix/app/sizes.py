"""Sizes as people write them."""

from __future__ import annotations

import re

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?b)?\s*", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_LARGEST = 1 << 60
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def parse_size(text: str) -> int:
    """Bytes in `512M`, `2G`, `1.5GiB`, `4096`; units are powers of 1,024. Raises `ValueError`."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no size; write a number of bytes, or one like 512M, 2G or 1.5GiB")
    number, unit, _ = match.groups()
    size = int(float(number) * 1024 ** _POWERS[unit.lower()])
    if not 0 < size <= _LARGEST:
        raise ValueError(f"{text!r} is out of range; write a size above 0")
    return size


def show_size(size: int) -> str:
    """`1.5 GiB`: the largest unit that leaves at least 1."""
    power = min((size.bit_length() - 1) // 10 if size else 0, len(_UNITS) - 1)
    return f"{size / 1024**power:.4g} {_UNITS[power]}"
