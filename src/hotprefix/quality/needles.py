"""Facts hidden in a long text, and whether the model still knows which answer belongs to which question."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

import numpy as np

from hotprefix.prompt.tokenizer import Tokenizer
from hotprefix.quality.metrics import Logits

_LEAST_FACTS = 2
_FACT = "\n\nThe secret word of the {owner} is {word}.\n\n"
_QUESTION = "\n\nAs was said above, the secret word of the {owner} is"
_OWNERS = ("baker", "doctor", "farmer", "painter", "sailor", "teacher", "lawyer", "singer")
_WORDS = ("river", "silver", "garden", "winter", "orange", "bridge", "candle", "tiger", "window", "planet",
          "flower", "cotton", "hammer", "island", "butter", "castle")  # fmt: skip


class Needle(NamedTuple):
    """A question and the first token of its answer."""

    question: list[int]
    answer: int


class Haystack(NamedTuple):
    """A text with facts in it. `candidates` are the first tokens of all answers: whoever mixes facts up
    answers with one of the others."""

    tokens: list[int]
    needles: tuple[Needle, ...]
    candidates: tuple[int, ...]

    def is_found(self, needle: Needle, logits: Logits) -> bool:
        """Whether the right answer is the likeliest of all, by its log-likelihood."""
        return self.candidates[int(np.argmax(logits[list(self.candidates)]))] == needle.answer


def haystack(hay: Sequence[int], tokenizer: Tokenizer, length: int, seed: int) -> Haystack:
    """`length` tokens of hay, one fact in each part of like size; as many facts as half of it holds, and none
    where that is not even two."""
    random = Random(seed)
    words = _words_that_begin_differently(tokenizer)
    random.shuffle(words)
    owners = list(_OWNERS)[: len(words)]
    random.shuffle(owners)
    facts = [
        tokenizer.encode(_FACT.format(owner=owner, word=word))
        for owner, word in zip(owners, words, strict=False)
    ]
    longest = max(map(len, facts))
    count = min(len(facts), length // (2 * longest))
    if count < _LEAST_FACTS:
        return Haystack(list(hay[:length]), (), ())
    facts = facts[:count]
    piece = (length - sum(map(len, facts))) // count
    tokens: list[int] = []
    for number, fact in enumerate(facts):
        before = random.randrange(piece)
        text = hay[number * piece : (number + 1) * piece]
        tokens += [*text[:before], *fact, *text[before:]]
    tokens += hay[len(facts) * piece : len(facts) * piece + length - len(tokens)]
    needles = tuple(
        Needle(tokenizer.encode(_QUESTION.format(owner=owner)), _first(tokenizer, word))
        for owner, word in zip(owners[:count], words, strict=False)
    )
    return Haystack(tokens, needles, tuple(needle.answer for needle in needles))


def _first(tokenizer: Tokenizer, word: str) -> int:
    """The first token of a word within a sentence."""
    return tokenizer.encode(f" {word}")[0]


def _words_that_begin_differently(tokenizer: Tokenizer) -> list[str]:
    """A tokenizer may give several words the same first token, or only a space."""
    found: dict[int, str] = {}
    for word in _WORDS:
        found.setdefault(_first(tokenizer, word), word)
    return list(found.values())
