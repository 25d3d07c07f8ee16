"""What the options should be good for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_MOST_ANSWER = 256


class Goal(StrEnum):
    """What matters most."""

    LATENCY = "latency"
    MEMORY = "memory"
    BALANCED = "balanced"


@dataclass(frozen=True, slots=True)
class Wish:
    """`context` tokens of prompt and answer in the longest request, None for as many as the model has;
    `concurrency` of them at once."""

    goal: Goal = Goal.BALANCED
    context: int | None = None
    concurrency: int = 4


@dataclass(frozen=True, slots=True)
class Need:
    """A wish applied to a model: tokens of a request, and how many requests at once."""

    context: int
    concurrency: int

    @property
    def tokens(self) -> int:
        """Tokens that all requests together can have."""
        return self.context * self.concurrency

    @property
    def answer(self) -> int:
        """Tokens of the answer by which speeds are compared: a quarter of the request, at most 256."""
        return max(1, min(_MOST_ANSWER, self.context // 4))

    @property
    def prompt(self) -> int:
        """The other tokens."""
        return self.context - self.answer

    def seconds(self, prefill: float, decode: float) -> float:
        """How long one request takes at these speeds (tokens/s), nothing of it cached."""
        return self.prompt / prefill + self.answer / decode
