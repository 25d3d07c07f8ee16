"""Asymmetric integers of 4 or 2 bits, several to a byte."""

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
    offsets_down,
    offsets_from,
    scale_bytes,
    scale_shape,
    scales_from,
    scales_up,
)


class FewBits:
    """Steps from the least value upwards; step and least value for each channel, or for each token.

    A value is off by at most half a step. That is the range of the values under its scale, and 1/32 of
    the largest of them for what bfloat16 rounds, over twice the number of steps.
    """

    def __init__(self, bits: int, axis: int) -> None:
        if bits not in (2, 4):
            raise ValueError(f"codes have 2 or 4 bits here, not {bits}")
        self._bits = bits
        self._axis = axis
        self._levels = np.float32(2**bits - 1)
        self.name = f"int{bits}-{'channel' if axis == CHANNEL else 'token'}"

    def size(self, shape: Shape) -> int:
        return 2 * scale_bytes(shape, self._axis) + _packed_bytes(prod(shape), self._bits)

    def encode(self, values: Floats) -> list[NDArray[np.generic]]:
        least = offsets_down(values.min(axis=self._axis, keepdims=True))
        offsets = offsets_from(least)
        ranges = values.max(axis=self._axis, keepdims=True) - offsets
        steps = scales_up(ranges / self._levels)
        values -= offsets
        np.multiply(values, inverse(scales_from(steps)), out=values)
        np.rint(values, out=values)
        return [least, steps, _packed(values.astype(np.uint8).reshape(-1), self._bits)]

    def decode(self, code: Bytes, shape: Shape) -> Floats:
        each = scale_bytes(shape, self._axis)
        scales = scale_shape(shape, self._axis)
        offsets = offsets_from(code[:each].view(np.uint16).reshape(scales))
        steps = scales_from(code[each : 2 * each].view(np.uint16).reshape(scales))
        codes = _unpacked(code[2 * each :], prod(shape), self._bits)
        values: Floats = np.multiply(codes.reshape(shape), steps, dtype=np.float32)
        values += offsets
        return values


def _packed_bytes(count: int, bits: int) -> int:
    return -(-count * bits // 8)


def _packed(codes: Bytes, bits: int) -> Bytes:
    """The first part of the codes in the lowest bits of all bytes, the next one above, and so on."""
    size = _packed_bytes(len(codes), bits)
    out = np.zeros(size, np.uint8)
    for number, start in enumerate(range(0, len(codes), size)):
        part = codes[start : start + size]
        out[: len(part)] |= part << np.uint8(number * bits)
    return out


def _unpacked(packed: Bytes, count: int, bits: int) -> Bytes:
    out = np.empty((8 // bits, len(packed)), np.uint8)
    mask = np.uint8(2**bits - 1)
    for number in range(8 // bits):
        np.bitwise_and(packed >> np.uint8(number * bits), mask, out=out[number])
    return out.reshape(-1)[:count]
