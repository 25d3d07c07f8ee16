"""Which tokens deserve finer steps: scores in bits beyond the middle."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.floats import Floats

_TINY = np.float32(2.0**-60)


class TokenScorer(Protocol):
    """Scores the tokens of a block, [2, layers, kv heads, tokens, head size] → [layers, kv heads, tokens]."""

    def score(self, values: Floats) -> Floats: ...


class LinearTokenScorer:
    """The router that `hotprefix calibrate` fitted: one linear function for each layer and head."""

    def __init__(self, calibration: Calibration) -> None:
        self._weights = calibration.router
        self._bias = calibration.bias

    def score(self, values: Floats) -> Floats:
        weights, size = self._weights, values.shape[-1]
        # Sums without the BLAS, whose threads would be woken for so little.
        score: Floats = np.einsum("lhtd,lhd->lht", values[0], weights[..., :size])
        score += np.einsum("lhtd,lhd->lht", values[1], weights[..., size : 2 * size])
        lengths = log2_lengths(values)
        score += lengths[0] * weights[..., -2, None]
        score += lengths[1] * weights[..., -1, None]
        return score + self._bias[..., None]


class ShortScorer:
    """Without a calibration: tokens with short values (`side` 1), or short keys (0), are those that much
    attention goes to.

    A token whose vector is half as long as the root mean square of its block gets one bit more.
    Source for keys: Devoto et al., arXiv 2406.11430.
    """

    def __init__(self, side: int) -> None:
        self._side = side

    def score(self, values: Floats) -> Floats:
        squares = np.square(values[self._side]).sum(axis=-1).mean(axis=-1, keepdims=True)
        score: Floats = np.log2(np.maximum(squares, _TINY)) / 2 - log2_lengths(values)[self._side]
        return score


class EqualScorer:
    """Every token is in the middle: the same bits for all."""

    def score(self, values: Floats) -> Floats:
        return np.zeros(values.shape[1:4], np.float32)


def log2_lengths(values: Floats) -> Floats:
    """log2 of the length of each vector along the last axis."""
    squares = np.einsum("...d,...d->...", values, values)
    lengths: Floats = np.log2(np.maximum(squares, _TINY)) / 2
    return lengths


def features(keys: Floats, values: Floats) -> Floats:
    """What the router sees, [..., tokens, 2 · head size + 2]: the un-rotated key, the value, and log2 of the
    length of both."""
    lengths = [log2_lengths(part)[..., None] for part in (keys, values)]
    return np.concatenate((keys, values, *lengths), axis=-1)
