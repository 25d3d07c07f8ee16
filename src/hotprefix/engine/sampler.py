"""Logits → one token per sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hotprefix.base.errors import LogicError
from hotprefix.engine.candidates import candidates, pick
from hotprefix.engine.logprobs import token_logprob
from hotprefix.engine.request import TokenLogprob
from hotprefix.engine.row_state import RowState


class Drawn(NamedTuple):
    """A token, and its log-probability if the request wants it."""

    token_id: int
    logprob: TokenLogprob | None


class Sampler:
    """Draws one token for each row of a batch.

    The order is vLLM's: logit_bias, penalties (repetition over prompt and answer; frequency and
    presence over the answer), grammar, temperature, min_p, top_k, top_p. Log-probabilities are the
    model's own, before any of these. What a row draws depends on that row alone, never on its
    company in the batch.
    """

    def sample(self, logits: NDArray[np.float32], rows: Sequence[RowState]) -> list[Drawn]:
        """Draw from `logits` `[len(rows), vocab]`, which stay unchanged.

        The rows learn of their tokens by `accept`, not here. Raises `LogicError` if a row has no
        largest finite logit (NaN or infinity from the model, or no token left to draw).
        """
        if logits.shape[0] != len(rows):
            raise LogicError(f"{logits.shape[0]} rows of logits for {len(rows)} sequences")
        if all(row.plain for row in rows):
            return _likeliest(logits)
        return [_draw(values, row) for values, row in zip(logits, rows, strict=True)]


def _likeliest(logits: NDArray[np.float32]) -> list[Drawn]:
    if not len(logits):
        return []
    ids = logits.argmax(axis=1)  # NaN counts as largest, so checking what was picked finds it
    peaks = logits[np.arange(len(ids)), ids]
    if not np.isfinite(peaks).all():
        raise _no_peak(float(peaks[~np.isfinite(peaks)][0]))
    return [Drawn(token_id, None) for token_id in ids.tolist()]


def _draw(raw: NDArray[np.float32], row: RowState) -> Drawn:
    logits = raw
    if row.adjusted:
        _check(raw)  # a grammar could mask a NaN away
        logits = raw.copy()
        row.adjust(logits)
    likeliest = int(logits.argmax())
    if not np.isfinite(logits[likeliest]):
        raise _no_peak(float(logits[likeliest]))
    token_id = likeliest if row.greedy else _draw_at_random(logits, row)
    wanted = row.sampling.top_logprobs
    return Drawn(token_id, None if wanted is None else token_logprob(raw, token_id, wanted))


def _draw_at_random(logits: NDArray[np.float32], row: RowState) -> int:
    ids, weights = candidates(logits, row.sampling)
    at = pick(weights, row.uniform())
    return at if ids is None else int(ids[at])


def _check(logits: NDArray[np.float32]) -> None:
    peak = float(logits.max())
    if not np.isfinite(peak):
        raise _no_peak(peak)


def _no_peak(peak: float) -> LogicError:
    return LogicError(f"can't draw a token: the largest logit is {peak}")
