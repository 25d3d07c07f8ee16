"""Tokens that stay whatever happens."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotprefix.cache.recut import Places
from hotprefix.engine.strategy.choice import Span


@dataclass(frozen=True, slots=True)
class Keepers:
    """The first `sinks` tokens of a sequence, which attention leans on, and the `pins` of its prompt."""

    sinks: int = 4
    pins: tuple[Span, ...] = ()

    @property
    def tokens(self) -> int:
        """How many they are."""
        spans = sorted([(0, self.sinks), *self.pins])
        total = end = 0
        for start, stop in spans:
            total += max(0, stop - max(start, end))
            end = max(end, stop)
        return total

    def among(self, origins: Places) -> NDArray[np.bool_]:
        """Which of some tokens, given by where they lie in the sequence, are among them."""
        found: NDArray[np.bool_] = origins < self.sinks
        for start, stop in self.pins:
            found |= (origins >= start) & (origins < stop)
        return found


def evicted_tokens(judged: int, block_size: int) -> int:
    """A tenth of the tokens that may go, in whole blocks: then what stays behind them stays in its slots."""
    return block_size * max(1, -(-judged // (10 * block_size)))
