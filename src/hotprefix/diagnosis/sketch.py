"""A few hashes that similar prompts have in common, wherever they begin to differ."""

from __future__ import annotations

import numpy as np

_RUN = 16
_SIZE = 48
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FACTORS = np.array([pow(0x100000001B3, k + 1, 1 << 64) | 1 for k in range(_RUN)], dtype=np.uint64)


def sketch_of(ids: bytes) -> tuple[int, ...]:
    """The smallest hashes of all runs of 16 tokens: at most 48, rising.

    Two prompts share about as large a part of their sketches as of their runs, and a prompt that
    is wholly within a longer one shares all of those that the longer one keeps of it. Empty below
    16 tokens. `ids` are 32-bit integers.
    """
    tokens = np.frombuffer(ids, dtype=np.int32).astype(np.uint64)
    count = len(tokens) - _RUN + 1
    if count <= 0:
        return ()
    # Products and sums wrap at 64 bits, as a polynomial hash wants.
    runs = np.zeros(count, dtype=np.uint64)
    mixed = (tokens + np.uint64(1)) * _MULTIPLIER
    mixed ^= mixed >> np.uint64(29)
    for offset in range(_RUN):
        runs += mixed[offset : offset + count] * _FACTORS[offset]
    runs ^= runs >> np.uint64(32)
    runs *= _MULTIPLIER
    smallest = np.partition(runs, _SIZE)[:_SIZE] if count > _SIZE else runs
    return tuple(sorted(set(smallest.tolist())))
