"""What calibration sees of a document: its KV, and how it was looked at."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotprefix.quality.attention import Floats, Looks, looks
from hotprefix.quality.model import MeasuredModel

_EVERY = 3
"""Every third query is enough for means over hundreds of them."""


class Size(NamedTuple):
    """Of a model's KV."""

    layers: int
    heads: int
    head_size: int


class Seen(NamedTuple):
    """Of one layer: un-rotated `keys` and `values` [kv heads, tokens, head size], the mean square of the
    rotated `queries` [kv heads, head size], and for each KV head how its tokens were looked at."""

    keys: Floats
    values: Floats
    energy: Floats
    looks: list[Looks]


def size_of(model: MeasuredModel) -> Size:
    """The dimensions of a model's KV."""
    heads, _, head_size = model.format.inputs[0].block_shape
    return Size(len(model.format.inputs) // 2, heads, head_size)


class Observer:
    """Runs documents through a model that tells its queries."""

    def __init__(self, model: MeasuredModel) -> None:
        self._model = model
        self.size = size_of(model)
        self.rotary = model.facts.rotary

    def run(self, tokens: Sequence[int]) -> None:
        """Compute a document; `layer` tells about it until the next one."""
        # One step, so that the queries of all tokens are there behind it.
        self._model.prefill(tokens, chunk=len(tokens))
        self._tokens = len(tokens)

    def layer(self, layer: int) -> Seen:
        """What was seen in a layer."""
        _, heads, head_size = self.size
        keys = self._model.cached("key", layer, self._tokens)
        values = self._model.cached("value", layer, self._tokens)
        queries = self._model.queries(layer).reshape(self._tokens, heads, -1, head_size)
        places = np.arange(_EVERY, self._tokens, _EVERY)
        asked = queries[places].transpose(1, 2, 0, 3)
        seen = [looks(asked[head], keys[head], values[head], places) for head in range(heads)]
        energy = np.square(queries).mean(axis=(0, 2))
        return Seen(self.unrotated(keys), values, energy, seen)

    def unrotated(self, keys: Floats) -> Floats:
        """Keys as before the embedding, where that is a known rotation."""
        positions: NDArray[np.int64] = np.arange(keys.shape[-2], dtype=np.int64)
        return keys if self.rotary is None else self.rotary.rotated(keys, -positions)
