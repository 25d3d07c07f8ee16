"""Log-probabilities of drawn tokens."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hotprefix.engine.request import TokenLogprob


def token_logprob(logits: NDArray[np.float32], token_id: int, top: int) -> TokenLogprob:
    """Natural log-probability of `token_id` under `logits` `[vocab]`, and the `top` likeliest tokens.

    The alternatives are sorted by falling probability, equal ones by id.
    """
    scale = _log_sum_exp(logits)
    best = _likeliest(logits, min(top, logits.size))
    return TokenLogprob(
        token_id=token_id,
        logprob=float(logits[token_id]) - scale,
        top=tuple((int(t), float(logits[t]) - scale) for t in best),
    )


def _log_sum_exp(logits: NDArray[np.float32]) -> float:
    peak = logits.max()
    total = np.exp(logits - peak).sum(dtype=np.float64)
    return float(peak) + float(np.log(total))


def _likeliest(logits: NDArray[np.float32], count: int) -> NDArray[np.intp]:
    if count == 0:
        return np.empty(0, dtype=np.intp)
    bound = np.partition(logits, logits.size - count)[logits.size - count]
    ids = np.flatnonzero(logits >= bound)
    return ids[np.argsort(-logits[ids], kind="stable")][:count]
