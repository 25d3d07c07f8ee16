"""A strategy that lets sequences of any length through in a bounded part of the arena."""

from __future__ import annotations

from dataclasses import dataclass

from hotprefix.base.errors import ContextLengthExceeded
from hotprefix.cache.base import Room
from hotprefix.engine.strategy.base import Cutter
from hotprefix.engine.strategy.choice import StrategyName


@dataclass(frozen=True, slots=True)
class CuttingStrategy:
    """Sequences of at most `longest` tokens; whenever `cutter.budget` of them are cached, some have to go.

    Until then nothing differs from `dynamic`, so what the cache knows of the first `budget` tokens is
    reused, and what is computed of them can be reused by others.
    """

    name: StrategyName
    cutter: Cutter
    longest: int

    @property
    def yields(self) -> bool:
        return True

    def check(self, prompt: int, answer: int | None) -> None:
        if prompt >= self.longest:
            raise ContextLengthExceeded(
                f"The prompt has {prompt:,} tokens; with the strategy '{self.name}' this server takes fewer "
                f"than {self.longest:,} (--kv-longest). Shorten the messages.",
                param="messages",
            )

    def longest_answer(self, prompt: int) -> int:
        return self.longest - prompt

    def room(self, length: int, left: int) -> Room:
        within = min(length, self.cutter.budget)
        return Room(within, within)
