"""`static`: everything that a sequence can need is taken before it starts."""

from __future__ import annotations

from hotprefix.base.errors import ContextLengthExceeded
from hotprefix.cache.base import Room
from hotprefix.engine.strategy.base import Bounds
from hotprefix.engine.strategy.choice import StrategyName


class StaticStrategy:
    """Takes blocks for the prompt and the longest answer at once, and keeps them to the end.

    A sequence that has started so never waits for a block and is never set back. What can't be had
    is refused before anything is computed.
    """

    name = StrategyName.STATIC
    cutter = None
    yields = False

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds

    def check(self, prompt: int, answer: int | None) -> None:
        wanted, bounds = prompt + (1 if answer is None else answer), self._bounds
        if wanted <= bounds.tokens:
            return
        where = (
            f"the KV arena holds {bounds.arena_tokens:,} tokens (--kv-arena)"
            if bounds.arena_tokens < bounds.context
            else f"the model's context is {bounds.context:,} tokens"
        )
        raise ContextLengthExceeded(
            f"The strategy 'static' takes room for prompt and answer at once: {prompt:,} and "
            f"{wanted - prompt:,} tokens, together {wanted:,}, but {where}. Shorten the prompt, lower "
            "max_tokens, or use the strategy 'window', which needs no more than its window.",
            param="max_tokens" if prompt < bounds.tokens else "messages",
        )

    def longest_answer(self, prompt: int) -> int:
        return self._bounds.tokens - prompt

    def room(self, length: int, left: int) -> Room:
        return Room(length + left, length)
