"""Which keys came before: a Bloom filter, so that memory does not grow with the trace."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

BITS = 1 << 29
"""64 MiB. With n keys a new one is taken for known with probability (1 − e^(−4n/BITS))⁴: 3e−12 at 200,000,
1e−4 at 15 million."""
_HASHES = 4


class SeenKeys:
    """Remembers 64-bit numbers that are spread evenly."""

    def __init__(self, bits: int = BITS) -> None:
        # A page of zeros costs no memory before it is written to.
        self._bits = np.zeros(bits // 8, np.uint8)
        self._mask = np.uint64(bits - 1)
        self.unique = 0
        """Different keys so far."""

    def note(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """For each key whether it came before, in an earlier call or earlier in this one."""
        distinct, first, place = np.unique(keys, return_index=True, return_inverse=True)
        known = self._known(distinct)
        self.unique += int(len(distinct) - known.sum())
        again: NDArray[np.bool_] = np.arange(len(keys)) > first[place]
        return known[place] | again

    def _known(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        known = np.ones(len(keys), np.bool_)
        step = (keys >> np.uint64(32)) | np.uint64(1)
        for number in range(_HASHES):
            place = (keys + np.uint64(number) * step) & self._mask
            byte = (place >> np.uint64(3)).astype(np.int64)
            bit = np.uint8(1) << (place & np.uint64(7)).astype(np.uint8)
            known &= (self._bits[byte] & bit) != 0
            np.bitwise_or.at(self._bits, byte, bit)
        return known
