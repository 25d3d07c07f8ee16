"""Turning channels so that an outlier is shared among all of them."""

from __future__ import annotations

from math import prod

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.floats import Floats
from hotprefix.pages.codecs.quantiser import Bytes, Quantiser, Shape


class Hadamard:
    """Another quantiser, behind a normalised Hadamard matrix over the channels, its own inverse.

    The other one gets the transpose, [channels, tokens]: what is a channel to it is a token here.
    Lengths stay: the error of a token is as long as the other one's, spread over the channels.
    Channels are turned in groups of the largest power of two that divides their number.
    """

    def __init__(self, behind: Quantiser) -> None:
        self._behind = behind
        self.name = f"hadamard+{behind.name}"

    def size(self, shape: Shape) -> int:
        return self._behind.size(_transposed(shape))

    def encode(self, values: Floats) -> list[NDArray[np.generic]]:
        columns = np.ascontiguousarray(values.reshape(-1, values.shape[-1]).T)
        return self._behind.encode(_turned(columns))

    def decode(self, code: Bytes, shape: Shape) -> Floats:
        columns = _turned(self._behind.decode(code, _transposed(shape)))
        return np.ascontiguousarray(columns.T).reshape(shape)


def _transposed(shape: Shape) -> Shape:
    return shape[-1], prod(shape[:-1])


def _turned(columns: Floats) -> Floats:
    """Fast Walsh-Hadamard transform down the first axis. `columns` is used up.

    Sums of long rows: a matrix product would wake the threads of the BLAS behind numpy.
    """
    channels = columns.shape[0]
    group = channels & -channels
    other = np.empty_like(columns)
    half = 1
    while half < group:
        pairs = (channels // (2 * half), 2, half, -1)
        source, target = columns.reshape(pairs), other.reshape(pairs)
        np.add(source[:, 0], source[:, 1], out=target[:, 0])
        np.subtract(source[:, 0], source[:, 1], out=target[:, 1])
        columns, other = other, columns
        half *= 2
    columns *= np.float32(1 / np.sqrt(group))
    return columns
