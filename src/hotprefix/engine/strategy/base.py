"""The interface of a strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from hotprefix.cache.base import Room
from hotprefix.cache.recut import Places
from hotprefix.engine.strategy.choice import StrategyName

Importance = Callable[[Places], NDArray[np.float32]]
"""How much each of some cached tokens is worth to each layer, [layers, tokens]; more is better."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """What there is: tokens of the model's context, of the whole arena and of a block."""

    context: int
    arena_tokens: int
    block_size: int

    @property
    def tokens(self) -> int:
        """The most tokens of one sequence whose KV is all in the arena."""
        return min(self.context, self.arena_tokens)


@dataclass(frozen=True, slots=True)
class CachedTokens:
    """The tokens of a full cache, in order: where they lie in the sequence, and what they are worth."""

    origins: Places
    importance: Importance


class Cutter(Protocol):
    """Says what stays when the cache of a sequence is full."""

    @property
    def budget(self) -> int:
        """Most tokens in the cache: whole blocks."""
        ...

    def keep(self, cached: CachedTokens) -> Places:
        """The places that stay, rising; whole blocks fewer than there are. Equal caches, equal answers."""
        ...


class Strategy(Protocol):
    """How a sequence uses the arena. Immutable; knows neither scheduler nor blocks."""

    @property
    def name(self) -> StrategyName: ...

    @property
    def cutter(self) -> Cutter | None:
        """None: all tokens stay, so the sequence can't be longer than the arena or the context."""
        ...

    @property
    def yields(self) -> bool:
        """Whether a sequence gives its blocks up when another finds none."""
        ...

    def check(self, prompt: int, answer: int | None) -> None:
        """Raise `ContextLengthExceeded` for lengths (tokens) that this strategy can't serve."""
        ...

    def longest_answer(self, prompt: int) -> int:
        """The most tokens that may follow a prompt."""
        ...

    def room(self, length: int, left: int) -> Room:
        """What to take of the arena for `length` tokens that `left` more may follow."""
        ...
