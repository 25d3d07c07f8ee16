"""8-bit floats, e4m3: a sign, four bits of exponent, three of mantissa; 448 is the largest."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.floats import Floats
from hotprefix.pages.codecs.quantiser import (
    TOKEN,
    Bytes,
    Shape,
    inverse,
    largest,
    scale_bytes,
    scale_shape,
    scales_from,
    scales_up,
)

LARGEST = np.float32(448)
BIAS = np.float32(2**-8)
"""Half precision has an exponent bias of 15, e4m3 one of 7: this far down both have the same bits."""


class Float8:
    """One scale for each token, which makes its largest value 448.

    A value is off by at most 1/16 of itself, or by 2^-18 of the largest of its token if that is more.
    """

    name = "e4m3-token"

    def __init__(self) -> None:
        self._values = e4m3_values()

    def size(self, shape: Shape) -> int:
        return scale_bytes(shape, TOKEN) + prod(shape)

    def encode(self, values: Floats) -> list[NDArray[np.generic]]:
        words = scales_up(largest(values, TOKEN) / LARGEST)
        np.multiply(values, inverse(scales_from(words)) * BIAS, out=values)
        return [words, to_e4m3(values)]

    def decode(self, code: Bytes, shape: Shape) -> Floats:
        end = scale_bytes(shape, TOKEN)
        scales = scales_from(code[:end].view(np.uint16).reshape(scale_shape(shape, TOKEN)))
        values = np.take(self._values, code[end:]).reshape(shape)
        values *= scales
        return values


def to_e4m3(values: Floats) -> Bytes:
    """Words of values that are multiplied with `BIAS` and at most 448 before: half precision, shortened."""
    bits = values.astype(np.float16).view(np.uint16)
    sign = (bits >> 8).astype(np.uint8)
    bits &= 0x7FFF
    bits += np.uint16(0x3F) + (bits >> 7 & 1)  # round to nearest, ties to even
    bits >>= 7
    words = bits.astype(np.uint8)
    words |= sign & 0x80
    return words


def e4m3_values() -> Floats:
    """The values of all 256 words."""
    words = np.arange(256, dtype=np.uint16)
    halves = ((words & 0x7F) << 7 | (words & 0x80) << 8).view(np.float16)
    return np.divide(halves, BIAS, dtype=np.float32)
