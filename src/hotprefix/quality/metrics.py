"""How far predictions moved: divergence, agreement and likelihood, token by token."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Logits = NDArray[np.float32]
"""[tokens, vocabulary]."""

_ROWS = 32
"""Rows compared at once: the float64 copies of a large vocabulary stay small."""


@dataclass(frozen=True, slots=True)
class Shift:
    """What changed between two runs over the same tokens, one number a predicted token.

    `divergence` is KL(reference ‖ other) of the next token's distribution in nats; `agrees` says whether
    both put the same token first; `loss` and `reference_loss` are minus the log-likelihood in nats of the
    token that follows in the text.
    """

    divergence: Floats
    agrees: NDArray[np.bool_]
    loss: Floats
    reference_loss: Floats

    @property
    def tokens(self) -> int:
        """How many predictions were compared."""
        return len(self.divergence)


def log_softmax(logits: Logits) -> Floats:
    """Log-probabilities of rows of logits, in float64."""
    values = logits.astype(np.float64)
    values -= values.max(axis=-1, keepdims=True)
    values -= np.log(np.exp(values).sum(axis=-1, keepdims=True))
    return values


def compare(reference: Logits, other: Logits, followers: NDArray[np.int64]) -> Shift:
    """Compare rows of logits pairwise; `followers[i]` is the token that comes after row i in the text."""
    if reference.shape != other.shape or len(followers) != len(reference):
        raise ValueError(f"{reference.shape}, {other.shape} and {len(followers)} tokens do not fit together")
    parts = []
    for start in range(0, len(followers), _ROWS):
        rows = slice(start, start + _ROWS)
        parts.append(_compare(log_softmax(reference[rows]), log_softmax(other[rows]), followers[rows]))
    return joined(parts)


def joined(shifts: list[Shift]) -> Shift:
    """All of some comparisons as one."""
    return Shift(
        np.concatenate([shift.divergence for shift in shifts]),
        np.concatenate([shift.agrees for shift in shifts]),
        np.concatenate([shift.loss for shift in shifts]),
        np.concatenate([shift.reference_loss for shift in shifts]),
    )


def _compare(reference: Floats, other: Floats, followers: NDArray[np.int64]) -> Shift:
    rows = np.arange(len(followers))
    # A token of probability zero on the reference's side counts nothing: 0 · log 0 = 0.
    shares = np.exp(reference)
    terms = np.multiply(shares, reference - other, out=np.zeros_like(shares), where=shares > 0)
    return Shift(
        # Rounding can leave a divergence of nothing a little below zero.
        np.maximum(terms.sum(axis=-1), 0.0),
        reference.argmax(axis=-1) == other.argmax(axis=-1),
        -other[rows, followers],
        -reference[rows, followers],
    )
