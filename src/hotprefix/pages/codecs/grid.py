"""The points that values are rounded to: a mean and whole steps from it, for each channel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import BrokenPayload
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.experts import MIDDLE_BITS
from hotprefix.pages.codecs.floats import LIMIT, Floats
from hotprefix.pages.codecs.stock import Dimensions

_LEAST_KIND, _MOST_KIND = 8, 63
_ONE_STEP_KIND = 24
_LEAST_STEP, _MOST_STEP = 2.0**-100, 2.0**100


class Grid(NamedTuple):
    """`means` and `steps` [2, layers, kv heads, head size]; `kinds` likewise: twice log2 of the spread in
    steps, from 8 to 63, by which codes are grouped."""

    means: Floats
    steps: Floats
    kinds: NDArray[np.int16]


def grid_of(means: Floats, steps: Floats, spreads: Floats, bits: float) -> Grid:
    """The grid for about `bits` bits a value, from steps for `MIDDLE_BITS`."""
    finer = np.float32(2.0 ** (MIDDLE_BITS - bits))
    steps = np.clip(steps * finer, _LEAST_STEP, _MOST_STEP).astype(np.float32)
    kinds = np.rint(2 * np.log2(np.maximum(spreads, _LEAST_STEP) / steps)) + _ONE_STEP_KIND
    return Grid(means, steps, np.clip(kinds, _LEAST_KIND, _MOST_KIND).astype(np.int16))


def calibrated_grid(calibration: Calibration, bits: float) -> Grid:
    """The grid that `hotprefix calibrate` found."""
    return grid_of(calibration.means, calibration.steps, calibration.spreads, bits)


class OwnGrids:
    """Grids from a block's own numbers, for models without a calibration.

    Keys: every channel's mean, and a step that all channels of a head share, in proportion to the head's
    spread. Values: no mean, and the same step in proportion to their size. What decoding needs is stored:
    means and spreads as bfloat16.
    """

    def __init__(self, dimensions: Dimensions, bits: float) -> None:
        self._dimensions = dimensions
        self._bits = bits
        heads = dimensions.layers * dimensions.heads
        self._channels = heads * dimensions.head_size
        self.stored_bytes = 2 * (2 * self._channels + heads)

    def measure(self, values: Floats) -> tuple[Grid, bytes]:
        """The grid for the values of a block, and what is stored of it."""
        keys, others = values
        means = keys.mean(axis=2)
        spreads = np.sqrt(np.square(keys - means[:, :, None], dtype=np.float64).mean(axis=2))
        sizes = np.sqrt(np.square(others, dtype=np.float64).mean(axis=(2, 3)))
        words = [_words(part.reshape(-1)) for part in (means, spreads, sizes)]
        stored = np.concatenate(words).tobytes()
        return self.restore(np.frombuffer(stored, np.uint8)), stored

    def restore(self, stored: NDArray[np.uint8]) -> Grid:
        """The grid from what is stored. Raises `BrokenPayload`."""
        numbers = (stored.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):
            if not (np.abs(numbers) <= 4 * LIMIT).all():
                raise BrokenPayload("a mean or spread is not finite")
        size = self._dimensions
        shape = (size.layers, size.heads, size.head_size)
        means, spreads, sizes = np.split(numbers, (self._channels, 2 * self._channels))
        all_means = np.stack((means.reshape(shape), np.zeros(shape, np.float32)))
        all_spreads = np.stack((spreads.reshape(shape), np.broadcast_to(sizes.reshape(*shape[:2], 1), shape)))
        rough = np.sqrt(np.square(all_spreads.astype(np.float64)).mean(axis=-1, keepdims=True))
        steps = np.broadcast_to((_OWN_STEP * rough).astype(np.float32), all_spreads.shape)
        return grid_of(all_means, steps, np.abs(all_spreads), self._bits)


_OWN_STEP = 0.22
"""Steps in spreads of a normal distribution that take `MIDDLE_BITS` bits a value."""


def _words(values: NDArray[np.floating]) -> NDArray[np.uint16]:
    """bfloat16, cut."""
    return (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
