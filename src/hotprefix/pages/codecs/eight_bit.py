"""Symmetric 8-bit integers, −127 … 127."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.floats import Floats
from hotprefix.pages.codecs.quantiser import (
    CHANNEL,
    Bytes,
    Shape,
    inverse,
    largest,
    scale_bytes,
    scale_shape,
    scales_from,
    scales_up,
)

_LEVELS = np.float32(127)


class Int8:
    """One scale for each channel over the tokens, or for each token over the channels.

    A value is off by at most 1/252 of the largest one under its scale: half a step, which is 1/127 of
    that, rounded up to a bfloat16.
    """

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self.name = "int8-channel" if axis == CHANNEL else "int8-token"

    def size(self, shape: Shape) -> int:
        return scale_bytes(shape, self._axis) + prod(shape)

    def encode(self, values: Floats) -> list[NDArray[np.generic]]:
        most = largest(values, self._axis)
        words = scales_up(most / _LEVELS)
        np.multiply(values, inverse(scales_from(words)), out=values)
        np.rint(values, out=values)
        return [words, values.astype(np.int8)]

    def decode(self, code: Bytes, shape: Shape) -> Floats:
        end = scale_bytes(shape, self._axis)
        scales = scales_from(code[:end].view(np.uint16).reshape(scale_shape(shape, self._axis)))
        values: Floats = np.multiply(code[end:].view(np.int8).reshape(shape), scales, dtype=np.float32)
        return values
