"""Several experts decide together which tokens deserve to be cached."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

_LEAST_SPREAD = 1e-6


@dataclass(frozen=True, slots=True)
class Router:
    """Each expert speaks for a group of neighbouring layers and claims the tokens that these need most, at
    most `capacity` times its share of the places. Claimed tokens go first, then those that are worth
    most on average: so a token that only a few layers need is not outvoted by all others."""

    experts: int = 8
    capacity: float = 1.2

    def choose(self, importance: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """The `count` tokens to keep, rising, by their importance [layers, tokens]."""
        spread = np.maximum(importance.std(axis=1, keepdims=True), _LEAST_SPREAD)
        scores = (importance - importance.mean(axis=1, keepdims=True)) / spread
        groups = np.array_split(scores, min(self.experts, len(scores)))
        places = ceil(self.capacity * count / len(groups))
        claimed = np.zeros(importance.shape[1], dtype=bool)
        for group in groups:
            claimed[np.argsort(-group.mean(axis=0), kind="stable")[:places]] = True
        order = np.lexsort((-scores.mean(axis=0), ~claimed))
        return np.sort(order[:count]).astype(np.int64)
