"""Means, steps and routers from observed documents: everything of a calibration but the layers' budgets."""

from __future__ import annotations

import numpy as np

from hotprefix.pages.codecs.token_scores import features
from hotprefix.pages.rotary import Rotary
from hotprefix.quality.attention import Floats
from hotprefix.quality.observing import Seen, Size
from hotprefix.quality.ridge import Ridge

_PENALTY = 0.01
_TRUST = 0.35
"""Bits that a token gets for each doubling of its effect. It were a half if the router knew; it guesses."""

_FIRST = 4
"""The first tokens are kept exactly, and are like no others: nothing is learned from them."""

_LEAST_ENERGY = 1e-3
"""Of the mean of a head's channels: a channel that was never asked for may be, in another text."""


class Learner:
    """Gathers what documents show, layer by layer."""

    def __init__(self, size: Size) -> None:
        self._size = size
        layers, heads, head_size = size
        self._routers = [[Ridge(2 * head_size + 2) for _ in range(heads)] for _ in range(layers)]
        self._scorers = [Ridge(2 * heads * head_size) for _ in range(layers)]
        self._sums = np.zeros((2, 2, layers, heads, head_size))
        self._energy = np.zeros((layers, heads, head_size))
        self._tokens = 0
        self._documents = 0

    def add(self, layer: int, seen: Seen, learned_from: int) -> None:
        """What was seen in a layer; routers learn from the first `learned_from` tokens, which the others
        behind them looked at."""
        for side, cached in enumerate((seen.keys, seen.values)):
            values = cached[:, _FIRST:].astype(np.float64)
            self._sums[0, side, layer] += values.sum(axis=1)
            self._sums[1, side, layer] += np.square(values).sum(axis=1)
        self._energy[layer] += seen.energy
        if layer == 0:
            self._tokens += seen.keys.shape[1] - _FIRST
            self._documents += 1
        chosen = slice(_FIRST, learned_from)
        for head, looked in enumerate(seen.looks):
            rows = features(seen.keys[head, chosen], seen.values[head, chosen])
            self._routers[layer][head].add(rows, looked.effect[chosen])
        both = np.concatenate((seen.keys[:, chosen], seen.values[:, chosen])).swapaxes(0, 1)
        share = np.mean([looked.share[chosen] for looked in seen.looks], axis=0)
        self._scorers[layer].add(both.reshape(len(both), -1), np.log2(share + np.float32(2.0**-30)))

    def means(self) -> Floats:
        """Of every channel of keys and values, [2, layers, kv heads, head size]."""
        means: Floats = (self._sums[0] / self._tokens).astype(np.float32)
        return means

    def spreads(self) -> Floats:
        """Standard deviations, likewise."""
        variances = self._sums[1] / self._tokens - np.square(self._sums[0] / self._tokens)
        spreads: Floats = np.sqrt(np.maximum(variances, 1e-12)).astype(np.float32)
        return spreads

    def steps(self, rotary: Rotary | None) -> Floats:
        """Steps up to a factor for each layer and side, likewise.

        A key's channel gets the inverse of the strength with which it is asked, so that an error of any
        channel moves logits equally; the members of a rotated pair are asked in turn. All values of a
        layer get the same.
        """
        energy: Floats = (self._energy / self._documents).astype(np.float32)
        if rotary is not None:
            energy = _shared_by_pairs(energy, rotary)
        energy = np.maximum(energy, _LEAST_ENERGY * energy.mean(axis=-1, keepdims=True))
        spreads = self.spreads()[1]
        of_values = np.sqrt(np.square(spreads).mean(axis=(1, 2), keepdims=True))
        steps = np.stack((1 / np.sqrt(energy), np.broadcast_to(of_values, energy.shape)))
        return steps.astype(np.float32)

    def router(self) -> tuple[Floats, Floats]:
        """Weights [layers, kv heads, features] and bias [layers, kv heads], in bits, 0 in the middle."""
        weights, bias = [], []
        for row in self._routers:
            for ridge in row:
                slope, offset = ridge.fit(_PENALTY)
                weights.append(_TRUST * slope)
                bias.append(_TRUST * (offset - ridge.mean))
        layers, heads, _ = self._size
        shape = (layers, heads, -1)
        return np.array(weights, np.float32).reshape(shape), np.array(bias, np.float32).reshape(layers, heads)

    def scorer(self) -> tuple[Floats, Floats]:
        """Weights [layers, features] and bias [layers] that predict log2 of the attention a token gets."""
        fitted = [ridge.fit(_PENALTY) for ridge in self._scorers]
        return np.array([slope for slope, _ in fitted]), np.array([bias for _, bias in fitted], np.float32)


def _shared_by_pairs(energy: Floats, rotary: Rotary) -> Floats:
    half = len(rotary.inverse_frequencies)
    shared = energy.copy()
    if rotary.is_half_split:
        first, second = slice(0, half), slice(half, 2 * half)
    else:
        first, second = slice(0, 2 * half, 2), slice(1, 2 * half, 2)
    shared[..., first] = shared[..., second] = (energy[..., first] + energy[..., second]) / 2
    return shared
