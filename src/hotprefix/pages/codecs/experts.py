"""Precisions that share a block's tokens, and the rule by which they do."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.floats import Floats

Chosen = NDArray[np.uint8]
"""The number of an expert for each entry."""

OFFSETS = (3, 2, 1, 0, -1, -2)
"""Bits of the experts beyond the middle, finest first. One bit more is half the step."""

MIDDLE_BITS = 4
"""What the middle costs an average value at scale 1: the expert of offset 0 is called int4."""

DROPPED = -128
"""Stands for the offset of the expert that stores nothing: its tokens come back as the mean of all."""

FLOAT8 = -127
"""Stands for the offset of the expert whose codes are 8-bit floats, e4m3, counted in steps."""

_MOST_CAPACITY = 1000

_LEVELS = {DROPPED: -2, FLOAT8: 2}
"""Offsets of about the same error."""

COLD = {"fp8": FLOAT8, "int8": 4, "int6": 2, "int5": 1, "int4": 0, "int3": -1, "int2": -2, "drop": DROPPED}
"""Names of the coldest precision → its offset."""


@dataclass(frozen=True, slots=True)
class Experts:
    """`offsets` fall. Expert i takes at most `capacity` · `shares[i]` of the entries of a block, the last as
    many as come."""

    offsets: tuple[int, ...]
    shares: tuple[float, ...]
    capacity: float

    def choose(self, scores: Floats) -> Chosen:
        """An expert for each score: the one whose offset is nearest, or where that is full the next one.

        Whoever deserves precision most gets it first.
        """
        flat = scores.reshape(-1)
        wanted = np.bincount(nearest(flat, self.offsets), minlength=len(self.offsets))
        counts: list[int] = []
        waiting = 0
        for share, more in zip(self.shares, wanted.tolist(), strict=True):
            waiting += more
            counts.append(min(waiting, ceil(self.capacity * share * len(flat))))
            waiting -= counts[-1]
        counts[-1] += waiting
        chosen = np.empty(len(flat), np.uint8)
        chosen[np.argsort(-flat, kind="stable")] = np.repeat(np.arange(len(counts), dtype=np.uint8), counts)
        return chosen.reshape(scores.shape)


def nearest(scores: Floats, offsets: tuple[int, ...]) -> NDArray[np.intp]:
    """The place of the nearest of falling offsets, for each of a row of scores."""
    levels = np.array([_LEVELS.get(offset, offset) for offset in offsets], np.float32)
    edges = -(levels[:-1] + levels[1:]) / 2
    return np.searchsorted(edges, -scores)


def experts_down_to(cold: str, shares: tuple[float, ...], capacity: float) -> Experts:
    """The experts of `OFFSETS`, with one named `cold` as the coldest. Raises `ValueError`.

    `shares` are those of `OFFSETS`; the coldest takes the share of all that it replaces.
    """
    if cold not in COLD:
        raise ValueError(f"there is no cold precision {cold!r}; choose one of {', '.join(COLD)}")
    if not 1 <= capacity <= _MOST_CAPACITY:
        raise ValueError(f"a capacity factor is between 1 and {_MOST_CAPACITY}, not {capacity:g}")
    least = COLD[cold]
    level = _LEVELS.get(least, least)
    offsets = (*(offset for offset in OFFSETS if offset > level), least)
    warm = shares[: len(offsets) - 1]
    return Experts(offsets, (*warm, sum(shares) - sum(warm)), capacity)
