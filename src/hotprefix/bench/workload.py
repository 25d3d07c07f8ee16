"""The work that scenarios send: token ids and words, the same for the same seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

# Each is one token with a space before it, in every byte-level vocabulary in wide use.
_COMMON = (
    "time year people way day man thing woman life child world school state family student group "
    "country problem hand part place case week company system program question work government "
    "number night point home water room mother area money story fact month lot right study book"
)
_WORDS = _COMMON.split()


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much work a run does. All lengths in tokens, the rest are counts.

    `highest_id` bounds the random token ids; `short_longest` is the longest short prompt. Short requests go
    to `short_rounds` fresh pairs of servers, an even number above 2, or in one round to those that run; a
    round has `quads` quads.
    """

    highest_id: int = 40_000
    prefix: int = 2048
    suffix: int = 30
    misses: int = 5
    hits: int = 15
    system: int = 4096
    question: int = 30
    answer: int = 32
    turns: int = 10
    conversations: int = 3
    clients: int = 100
    shared: int = 1024
    own: int = 30
    out: int = 64
    rounds: int = 3
    short_rounds: int = 12
    quads: int = 16
    short_longest: int = 127
    short_out: int = 8


QUICK = Sizes(
    prefix=256,
    misses=2,
    hits=4,
    system=256,
    turns=3,
    conversations=1,
    clients=8,
    shared=128,
    out=8,
    rounds=1,
    short_rounds=1,
    quads=6,
)
"""A run that shows that everything works, in less than a minute; its figures prove nothing."""


class Workload:
    """An endless source of fresh work."""

    def __init__(self, seed: int, highest_id: int) -> None:
        self._random = random.Random(seed)
        # The lowest ids are special tokens in many vocabularies.
        self._lowest, self._highest = min(100, highest_id // 2), highest_id

    def ids(self, count: int) -> list[int]:
        """`count` random token ids."""
        return self._random.choices(range(self._lowest, self._highest), k=count)

    def words(self, count: int) -> str:
        """`count` words of one token each."""
        return " " + " ".join(self._random.choices(_WORDS, k=count))

    def length(self, longest: int) -> int:
        """A length between 2 and `longest`."""
        return self._random.randint(2, longest)
