"""`dynamic`: blocks are taken as they are needed."""

from __future__ import annotations

from hotprefix.cache.base import Room
from hotprefix.engine.strategy.base import Bounds
from hotprefix.engine.strategy.choice import StrategyName


class DynamicStrategy:
    """Takes blocks for the prompt, then one after the other; gives them up if another needs them more."""

    name = StrategyName.DYNAMIC
    cutter = None
    yields = True

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def check(self, prompt: int, answer: int | None) -> None:
        """An answer ends where the room does, so any prompt that the engine takes will do."""

    def longest_answer(self, prompt: int) -> int:
        return self._bounds.tokens - prompt

    def room(self, length: int, left: int) -> Room:
        return Room(length, length)
