"""How much an error in each cached token would be felt, from what attention did with it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

LAG = 32
"""Queries nearer than this don't count: all tokens are looked at by their neighbours, and a cached prefix
is asked from afar."""

_LEAST = np.float32(2.0**-60)


class Looks(NamedTuple):
    """For one KV head, [tokens]: log2 of the mean square effect of an error, and the mean attention, over the
    queries that could see a token (the normalisation of ZipCache, arXiv 2405.14256)."""

    effect: Floats
    share: Floats


def looks(queries: Floats, keys: Floats, values: Floats, places: NDArray[np.int64]) -> Looks:
    """How tokens [tokens, head size] were looked at by `queries` [group, queries, head size], which stand at
    `places`. All keys and queries are rotated.

    With a weight A an error e of a value moves the output by A·e, and an error of a key that changes the
    logit by e moves it by A·e·|v − o|: o is the output. So the effects are the means of A² and A²·|v − o|²;
    both sides of a token share one precision, hence the middle of their logarithms.
    """
    tokens, size = keys.shape
    standing = np.arange(tokens)
    is_past = standing[None] <= places[:, None]
    logits = queries @ keys.T
    logits /= np.float32(np.sqrt(size))
    logits[:, ~is_past] = -np.inf
    logits -= logits.max(axis=-1, keepdims=True)
    weights = np.exp(logits, out=logits)
    weights /= weights.sum(axis=-1, keepdims=True)
    outputs = weights @ values
    distances = np.square(values).sum(axis=-1) + np.square(outputs).sum(axis=-1)[..., None]
    distances -= 2 * (outputs @ values.T)
    weights *= standing[None] <= places[:, None] - LAG
    counts = np.maximum((standing[None] <= places[:, None] - LAG).sum(axis=0) * len(queries), 1)
    share = weights.sum(axis=(0, 1)) / counts
    squares = np.square(weights, out=weights)
    of_values = squares.sum(axis=(0, 1)) / counts
    squares *= np.maximum(distances, 0)
    of_keys = squares.sum(axis=(0, 1)) / counts
    effect = (np.log2(np.maximum(of_values, _LEAST)) + np.log2(np.maximum(of_keys, _LEAST))) / 2
    return Looks(effect.astype(np.float32), share.astype(np.float32))
