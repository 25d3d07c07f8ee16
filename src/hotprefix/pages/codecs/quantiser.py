"""The interface of a quantiser, and the scales that all of them keep."""

from __future__ import annotations

from math import prod
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.base import BrokenPayload
from hotprefix.pages.codecs.floats import LIMIT, Floats

Bytes: TypeAlias = NDArray[np.uint8]
Shape: TypeAlias = tuple[int, ...]

SCALE_BYTES = 2
CHANNEL, TOKEN = -2, -1
"""The axis that shares a scale: all tokens of a channel, or all channels of a token."""

TINY = 2.0**-120
"""Scales below this count as zero: their inverse would overflow."""

_MOST = int(np.float32(2 * LIMIT).view(np.uint32) >> 16)
_LEAST = int(np.float32(TINY).view(np.uint32) >> 16)


class Quantiser(Protocol):
    """float32 [..., tokens, n] ↔ bytes. Values are finite and below `LIMIT`."""

    @property
    def name(self) -> str:
        """Names everything that decoding depends on."""
        ...

    def size(self, shape: Shape) -> int:
        """Bytes for values of a shape."""
        ...

    def encode(self, values: Floats) -> list[NDArray[np.generic]]:
        """Contiguous arrays whose bytes, joined, are the code. `values` is used up."""
        ...

    def decode(self, code: Bytes, shape: Shape) -> Floats:
        """Values from `size(shape)` bytes. Raises `BrokenPayload`."""
        ...


def scale_shape(shape: Shape, axis: int) -> Shape:
    """The shape of scales, with 1 for the axis that shares one."""
    return (*shape[:-2], 1, shape[-1]) if axis == CHANNEL else (*shape[:-1], 1)


def largest(values: Floats, axis: int) -> Floats:
    """The largest absolute value along an axis that stays, with length 1."""
    # Floats without a sign order as their bits do, and integers are compared twice as fast.
    bits = np.bitwise_and(values.view(np.int32), np.int32(0x7FFF_FFFF))
    most: Floats = bits.max(axis=axis, keepdims=True).view(np.float32)
    return most


def scales_up(scales: Floats) -> NDArray[np.uint16]:
    """bfloat16 words of scales, rounded up by less than 1/128, so that no code overflows. Tiny ones become 0.

    Half precision would be finer and end at 65,504: some models' outliers are larger.
    """
    words = ((scales.view(np.uint32) + np.uint32(0xFFFF)) >> 16).astype(np.uint16)
    words[words < _LEAST] = 0
    return words


def offsets_down(offsets: Floats) -> NDArray[np.uint16]:
    """bfloat16 words of numbers of either sign, rounded towards minus infinity."""
    bits = offsets.view(np.uint32)
    towards = np.where(bits >> 31, np.uint32(0xFFFF), np.uint32(0))
    return ((bits + towards) >> 16).astype(np.uint16)


def scales_from(words: NDArray[np.uint16]) -> Floats:
    """Scales from their words. Raises `BrokenPayload` for what `scales_up` can't give."""
    if words.size and int(words.max()) > _MOST:
        raise BrokenPayload("a scale is negative, not finite or larger than any value")
    return _widened(words)


def offsets_from(words: NDArray[np.uint16]) -> Floats:
    """Offsets from their words. Raises `BrokenPayload` for what `offsets_down` can't give."""
    if words.size and int((words & 0x7FFF).max()) > _MOST:
        raise BrokenPayload("an offset is not finite or larger than any value")
    return _widened(words)


def _widened(words: NDArray[np.uint16]) -> Floats:
    return (words.astype(np.uint32) << 16).view(np.float32)


def inverse(scales: Floats) -> Floats:
    """1 / scale, and 0 for 0."""
    return np.divide(np.float32(1), scales, out=np.zeros_like(scales), where=scales > 0)


def scale_bytes(shape: Shape, axis: int) -> int:
    """Bytes of the scales of values of a shape."""
    return prod(scale_shape(shape, axis)) * SCALE_BYTES
