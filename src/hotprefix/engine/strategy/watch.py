"""Looking over the model's shoulder: what attention did in a pass, for those who will need to know."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotprefix.engine.strategy.base import Strategy
from hotprefix.engine.strategy.tally import Tally


class AttentionSource(Protocol):
    """A runner that knows what attention did in its last run."""

    def attention(self) -> list[NDArray[np.float32]]:
        """For each row the attention [layers, tokens] that each token in its cache got from the row's last
        `looked_back(tokens of the row)` tokens, summed over these and over heads."""
        ...

    def looked_back(self, tokens: int) -> int:
        """How many of a row's tokens count."""
        ...


class Watched(Protocol):
    """A sequence whose cache may be cut."""

    tally: Tally | None

    @property
    def strategy(self) -> Strategy: ...


class AttentionWatch:
    """Keeps the tallies of all sequences that have a cutter."""

    def __init__(self, source: AttentionSource) -> None:
        self._source = source

    def note(self, rows: Sequence[tuple[Watched, int]]) -> None:
        """The rows of the last run, in order: whose they were, and how many tokens each had."""
        if all(sequence.strategy.cutter is None for sequence, _ in rows):
            return
        for (sequence, tokens), shares in zip(rows, self._source.attention(), strict=False):
            if sequence.strategy.cutter is None:
                continue
            if sequence.tally is None:
                sequence.tally = Tally()
            sequence.tally.note(shares, self._source.looked_back(tokens))
