"""Which tokens may be drawn, and with what weight: min_p, top_k, top_p over one row of logits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hotprefix.engine.request import Sampling

_FIRST_LOOK = 1024
"""Tokens looked at before a whole vocabulary is sorted for top_p; nearly always enough."""

_BLOCK = 256
"""Weights summed at once when one is picked from a whole vocabulary."""

Ids = NDArray[np.intp]
Weights = NDArray[np.float32]


def candidates(logits: NDArray[np.float32], sampling: Sampling) -> tuple[Ids | None, Weights]:
    """Tokens that min_p, top_k and top_p leave (None: all), and their unnormalised weights.

    `logits` is `[vocab]` with a finite maximum; `sampling.temperature` is positive. Tokens equal
    to the last of the top_k stay too; for top_p, equal tokens are taken in the order of their ids.
    """
    logits = (logits - logits.max()) / np.float32(sampling.temperature)
    ids: Ids | None = None
    if sampling.min_p > 0:
        ids = np.flatnonzero(logits >= np.float32(np.log(sampling.min_p)))
        logits = logits[ids]
    if 0 < sampling.top_k < logits.size:
        kept = _at_least(logits, sampling.top_k)
        ids, logits = _take(ids, kept), logits[kept]
    weights = np.exp(logits)
    if sampling.top_p < 1:
        kept = _nucleus(weights, sampling.top_p)
        ids, weights = _take(ids, kept), weights[kept]
    return ids, weights


def pick(weights: Weights, uniform: float) -> int:
    """Index drawn in proportion to `weights`, by a number in [0, 1)."""
    if weights.size <= 2 * _BLOCK:
        return _pick_flat(weights, uniform)
    sums = np.add.reduceat(weights, np.arange(0, weights.size, _BLOCK))
    ends = np.cumsum(sums, dtype=np.float64)
    block = _position(ends, uniform * ends[-1])
    within = (uniform * ends[-1] - (ends[block] - sums[block])) / sums[block]
    start = block * _BLOCK
    return start + _pick_flat(weights[start : start + _BLOCK], min(max(float(within), 0.0), 1.0))


def _pick_flat(weights: Weights, uniform: float) -> int:
    ends = np.cumsum(weights, dtype=np.float64)
    return _position(ends, uniform * ends[-1])


def _position(ends: NDArray[np.float64], target: float) -> int:
    """First index whose running total exceeds `target`, and never one of zero weight."""
    at = int(np.searchsorted(ends, target, side="right"))
    return at if at < ends.size else int(np.searchsorted(ends, ends[-1], side="left"))


def _take(ids: Ids | None, kept: Ids) -> Ids:
    return kept if ids is None else ids[kept]


def _at_least(logits: NDArray[np.float32], count: int) -> Ids:
    """Positions of the `count` largest, and of all equal to the smallest of them."""
    at = logits.size - count
    return np.flatnonzero(logits >= np.partition(logits, at)[at])


def _nucleus(weights: Weights, top_p: float) -> Ids:
    """Positions of the fewest likeliest tokens with at least `top_p` of the mass, in rising order."""
    wanted = top_p * float(weights.sum(dtype=np.float64))
    likely = weights
    if weights.size > _FIRST_LOOK:
        first = np.partition(weights, -_FIRST_LOOK)[-_FIRST_LOOK:]
        likely = first if float(first.sum(dtype=np.float64)) >= wanted else weights
    values = np.sort(likely)[::-1]
    count = int(np.searchsorted(np.cumsum(values, dtype=np.float64), wanted, side="left")) + 1
    last = values[min(count, values.size) - 1]
    kept = np.flatnonzero(weights >= last)
    equal = np.flatnonzero(weights[kept] == last)
    return np.delete(kept, equal[equal.size - (kept.size - count) :]) if kept.size > count else kept
