"""Keys for the blocks of a trace: short, chained, the same in every process."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.ids import BlockKey

KEY_BYTES = 8
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1


def number_of(text: str) -> int:
    """A stable 64-bit number for a name."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def prefix_hashes(rows: Sequence[Sequence[int]], seeds: Sequence[int]) -> NDArray[np.uint64]:
    """One number for each id of each row, one row after the other.

    It depends on the row's seed and on all ids of the row up to this one, with their places.
    """
    lengths = np.fromiter((len(row) for row in rows), np.int64, len(rows))
    total = int(lengths.sum())
    ids = _unsigned(list(chain.from_iterable(rows)))
    starts = np.cumsum(lengths) - lengths
    places = np.arange(total, dtype=np.uint64) - np.repeat(starts, lengths).astype(np.uint64)
    # Sums wrap around at 64 bits, so those of a row are differences of running sums.
    sums = np.cumsum(_mixed(ids * _SECOND + (places + np.uint64(1)) * _STEP))
    before = np.concatenate([np.zeros(1, np.uint64), sums])[starts]
    seed = np.fromiter((number & _MASK for number in seeds), np.uint64, len(rows))
    return _mixed(sums - np.repeat(before, lengths) + np.repeat(_mixed(seed), lengths))


def as_keys(hashes: NDArray[np.uint64], lengths: Sequence[int]) -> list[list[BlockKey]]:
    """The numbers as keys, in rows of these lengths."""
    keys: list[BlockKey] = hashes.view(f"V{KEY_BYTES}").tolist()
    rows, end = [], 0
    for length in lengths:
        start, end = end, end + length
        rows.append(keys[start:end])
    return rows


def _unsigned(numbers: list[int]) -> NDArray[np.uint64]:
    try:
        return np.array(numbers, np.uint64)
    except OverflowError:
        return np.array([number & _MASK for number in numbers], np.uint64)


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's finaliser (Steele, Lea and Flood, 2014)."""
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))
