"""How much each layer's keys and values are felt, measured by what coarse ones do to the predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.experts import OFFSETS, nearest
from hotprefix.pages.codecs.token_scores import LinearTokenScorer
from hotprefix.quality.attention import Floats
from hotprefix.quality.metrics import Logits, compare
from hotprefix.quality.model import MeasuredModel

SIDES = ("key", "value")
COARSE = (2.0, 1.0)
"""Steps of keys and values at which a layer is felt and yet not broken."""

_EXACT = 4
_MOST_APART = 8.0
"""No layer's steps differ by more from the middle: one text says only so much."""

_LEAST_FELT = np.float32(1e-12)
"""Nats: a layer that is not felt at all has a budget, too."""


class Passage(NamedTuple):
    """A document's KV, un-rotated keys first [2, layers, kv heads, tokens, head size]; how many bits each
    token gets beyond the middle; the text behind it, and what the model says of that."""

    values: Floats
    rotated_keys: Floats
    offsets: NDArray[np.int64]
    rest: Sequence[int]
    reference: Logits


class LayerBudgets:
    """Measures one layer and side after the other."""

    def __init__(self, model: MeasuredModel, draft: Calibration) -> None:
        self._model = model
        self._draft = draft
        self._scorer = LinearTokenScorer(draft)

    def read(self, values: Floats, rest: Sequence[int]) -> Passage:
        """The passage that the model has just prefilled; `values` are its un-rotated keys and its values."""
        count, layers = values.shape[3], values.shape[1]
        scores = self._scorer.score(values)
        offsets = np.array(OFFSETS)[nearest(scores.reshape(-1), OFFSETS)].reshape(scores.shape)
        rotated = np.stack([self._model.cached("key", layer, count) for layer in range(layers)])
        return Passage(values, rotated, offsets, rest, self._score(rest, count))

    def measure(self, passages: Sequence[Passage], tick: Callable[[], None]) -> Floats:
        """Mean divergence [2, layers] when one layer's keys, or values, are rounded to `COARSE` steps."""
        layers = self._draft.shape[0]
        found = np.zeros((2, layers), np.float32)
        for passage in passages:
            self._restore(passage)
            for layer in range(layers):
                for side in range(2):
                    found[side, layer] += self._divergence(passage, side, layer) / len(passages)
                tick()
        return found

    def _restore(self, passage: Passage) -> None:
        for layer, keys in enumerate(passage.rotated_keys):
            self._model.put("key", layer, keys)
            self._model.put("value", layer, passage.values[1, layer])

    def _divergence(self, passage: Passage, side: int, layer: int) -> float:
        exact = (passage.rotated_keys, passage.values[1])[side][layer]
        values = passage.values[side, layer]
        steps = COARSE[side] * self._draft.steps[side, layer][:, None]
        steps = steps * np.exp2(-passage.offsets[layer])[..., None]
        means = self._draft.means[side, layer][:, None]
        rough = (np.rint((values - means) / steps) * steps + means).astype(np.float32)
        rotary = self._model.facts.rotary
        if side == 0 and rotary is not None:
            rough = rotary.rotated(rough, np.arange(rough.shape[1], dtype=np.int64))
        rough[:, :_EXACT] = exact[:, :_EXACT]
        self._model.put(SIDES[side], layer, rough)
        logits = self._score(passage.rest, values.shape[1])
        self._model.put(SIDES[side], layer, exact)
        followers = np.array(passage.rest[1:])
        return float(compare(passage.reference[:-1], logits[:-1], followers).divergence.mean())

    def _score(self, tokens: Sequence[int], past: int) -> Logits:
        return np.concatenate([part.copy() for part in self._model.score(tokens, past)])


def budgeted(steps: Floats, divergence: Floats) -> Floats:
    """Steps with which all layers and sides are felt equally.

    Divergence grows with the square of the step, so bits spent anywhere help equally when each layer's
    part of it is the same: the solution of the greedy search over per-layer tables of KVTuner
    (arXiv 2502.04420) for steps that may be any number.
    """
    divergence = np.maximum(divergence, _LEAST_FELT)
    level = np.exp(np.log(divergence).mean())
    factors = np.array(COARSE)[:, None] * np.sqrt(level / divergence)
    middle = np.median(factors, axis=1, keepdims=True)
    factors = np.clip(factors, middle / _MOST_APART, middle * _MOST_APART)
    changed: Floats = (steps * factors[:, :, None, None]).astype(np.float32)
    return changed
