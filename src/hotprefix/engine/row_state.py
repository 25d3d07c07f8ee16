"""What the sampler remembers of one answer."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.grammar import Matcher
from hotprefix.engine.request import Sampling

GREEDY_BELOW = 1e-5
"""Temperatures under this draw the likeliest token: dividing by them would only lose precision."""

_SEED_MASK = (1 << 64) - 1


def system_entropy() -> int:
    """64 bits from the operating system."""
    return secrets.randbits(64)


class RowState:
    """Random numbers, token counts and grammar of one answer.

    `choice` i of a request with a seed draws from seed + i; without one, `entropy` gives the seed.
    `prompt_ids` count for the repetition penalty only. Raises `InvalidRequest` if `logit_bias`
    names a token outside the vocabulary.
    """

    def __init__(
        self,
        sampling: Sampling,
        vocab_size: int,
        prompt_ids: Iterable[int],
        *,
        choice: int = 0,
        entropy: Callable[[], int] = system_entropy,
        matcher: Matcher | None = None,
    ) -> None:
        self.sampling = sampling
        self.matcher = matcher
        self.greedy = sampling.temperature < GREEDY_BELOW
        self._penalised = sampling.presence_penalty != 0 or sampling.frequency_penalty != 0
        self._repeats = sampling.repetition_penalty != 1
        self.adjusted = self._penalised or self._repeats or bool(sampling.logit_bias) or matcher is not None
        self.plain = self.greedy and not self.adjusted and sampling.top_logprobs is None
        self._counts: dict[int, int] = {}
        self._seen: dict[int, None] = dict.fromkeys(prompt_ids) if self._repeats else {}
        self._bias_ids, self._bias = _bias(sampling, vocab_size)
        self._choice, self._entropy = choice, entropy
        self._random: np.random.Generator | None = None

    def uniform(self) -> float:
        """The next random number in [0, 1)."""
        if self._random is None:
            seed = self.sampling.seed
            start = self._entropy() if seed is None else seed + self._choice
            self._random = np.random.Generator(np.random.PCG64(start & _SEED_MASK))
        return float(self._random.random())

    def accept(self, token_id: int) -> None:
        """Note that `token_id` was added to the answer."""
        if self._penalised:
            self._counts[token_id] = self._counts.get(token_id, 0) + 1
        if self._repeats:
            self._seen[token_id] = None
        if self.matcher is not None:
            self.matcher.accept(token_id)

    def adjust(self, logits: NDArray[np.float32]) -> None:
        """Apply bias, penalties and grammar to `logits` `[vocab]`, in place."""
        sampling = self.sampling
        if self._bias_ids.size:
            logits[self._bias_ids] += self._bias
        if self._seen:
            ids = np.fromiter(self._seen, dtype=np.intp, count=len(self._seen))
            seen, penalty = logits[ids], np.float32(sampling.repetition_penalty)
            logits[ids] = np.where(seen > 0, seen / penalty, seen * penalty)
        if self._counts:
            ids = np.fromiter(self._counts.keys(), dtype=np.intp, count=len(self._counts))
            counts = np.fromiter(self._counts.values(), dtype=np.float32, count=len(self._counts))
            logits[ids] -= counts * np.float32(sampling.frequency_penalty)
            logits[ids] -= np.float32(sampling.presence_penalty)
        if self.matcher is not None:
            self.matcher.mask(logits)


def _bias(sampling: Sampling, vocab_size: int) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    ids = np.fromiter(sampling.logit_bias.keys(), dtype=np.int64, count=len(sampling.logit_bias))
    outside = ids[(ids < 0) | (ids >= vocab_size)]
    if outside.size:
        raise InvalidRequest(
            f"logit_bias names token {outside[0]}, but the vocabulary has the ids 0 to {vocab_size - 1}.",
            param="logit_bias",
        )
    values = np.fromiter(sampling.logit_bias.values(), dtype=np.float32, count=len(sampling.logit_bias))
    return ids.astype(np.intp), values
