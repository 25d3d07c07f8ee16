"""Which turns of a talk that is too long for the window are left out.

The rule looks only at the talk itself: it goes through the requests that led here, one after the other, and
where one is over `high`, drops whole oldest turns until `low` is reached. So every later request finds the
same cuts, whether the talk is stored here or sent anew, and the prompt keeps its beginning until `high` is
reached again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

_FREED = 0.2
"""Part of the window that a cut frees at least."""
_LEAST_HIGH = 0.4
"""However much room an answer asks for, this part of the window is the prompt's."""


@dataclass(frozen=True, slots=True)
class Window:
    """In tokens: a prompt over `high` is cut down to `low` or less."""

    high: int
    low: int

    @classmethod
    def of(cls, context: int, fullness: float, answer: int, margin: int = 0) -> Window:
        """For a model's `context`: prompts may fill `fullness` of it and leave `answer` tokens free.

        `margin` tokens are kept back: measures of a prompt may be off by that much.
        """
        high = min(int(context * fullness), context - max(answer, 1))
        high = max(high, int(context * _LEAST_HIGH)) - margin
        return cls(max(high, 1), max(high - int(context * _FREED), 1))


@dataclass(frozen=True, slots=True)
class Sized:
    """A message: who speaks, and its tokens in the prompt."""

    role: str
    tokens: int


@dataclass(frozen=True, slots=True)
class Cut:
    """What is left out: indices of messages, how many turns they are, and their tokens."""

    dropped: frozenset[int] = frozenset()
    turns: int = 0
    tokens: int = 0


def cut(messages: Sequence[Sized], window: Window, opening: int = 0) -> Cut:
    """Never drops system messages, nor the newest turn: the last user messages and what follows them.

    `opening` tokens stand behind the last message of every prompt, for the answer to begin.
    """
    turn_of = _turns(messages)
    sizes: list[int] = []
    """Of the turns, as far as they have come."""
    pinned, first = opening, 0
    for at, message in enumerate(messages):
        turn = turn_of[at]
        if turn is None:
            pinned += message.tokens
        else:
            sizes += [0] * (turn + 1 - len(sizes))
            sizes[turn] += message.tokens
        if _is_asked(messages, at):
            first = _first_kept(sizes, first, pinned, window)
    dropped = frozenset(at for at, turn in enumerate(turn_of) if turn is not None and turn < first)
    return Cut(dropped, first, sum(messages[at].tokens for at in dropped))


def _first_kept(sizes: Sequence[int], first: int, pinned: int, window: Window) -> int:
    total = pinned + sum(sizes[first:])
    if total > window.high:
        while first < len(sizes) - 1 and total > window.low:
            total -= sizes[first]
            first += 1
    return first


def _is_asked(messages: Sequence[Sized], at: int) -> bool:
    """Whether the model was asked after this message: an answer follows, or nothing."""
    if at + 1 == len(messages):
        return True
    return messages[at + 1].role == "assistant" and messages[at].role != "assistant"


def _turns(messages: Sequence[Sized]) -> list[int | None]:
    """The number of each message's turn; None for system messages, which belong to none.

    A turn begins with a user message that does not follow another one.
    """
    turns: list[int | None] = []
    turn, before = -1, ""
    for message in messages:
        if message.role in ("system", "developer"):
            turns.append(None)
            continue
        if turn < 0 or (message.role == "user" and before != "user"):
            turn += 1
        turns.append(turn)
        before = message.role
    return turns
