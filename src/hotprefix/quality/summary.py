"""Shifts of several documents in a few numbers, with their uncertainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from hotprefix.quality.metrics import Shift, joined

_RESAMPLES = 2000
_SEED = 1
_TAILS = (2.5, 97.5)


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and the bounds between which 95 % of resamples of the documents put it."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Summary:
    """Divergences in nats; `same_top` and `ppl_ratio` as ratios (1 is unchanged)."""

    kl_mean: Interval
    kl_median: float
    kl_p99: float
    kl_p999: float
    kl_max: float
    same_top: Interval
    ppl_ratio: Interval
    tokens: int
    documents: int


def summarise(shifts: Sequence[Shift]) -> Summary:
    """The summary over documents. Tokens of a text hang together, so documents are what is resampled."""
    everything = joined(list(shifts))
    median, p99, p999 = np.quantile(everything.divergence, (0.5, 0.99, 0.999))
    return Summary(
        kl_mean=_interval(shifts, lambda shift: float(shift.divergence.sum())),
        kl_median=float(median),
        kl_p99=float(p99),
        kl_p999=float(p999),
        kl_max=float(everything.divergence.max()),
        same_top=_interval(shifts, lambda shift: float(shift.agrees.sum())),
        ppl_ratio=_exponential(
            _interval(shifts, lambda shift: float((shift.loss - shift.reference_loss).sum()))
        ),
        tokens=everything.tokens,
        documents=len(shifts),
    )


def _interval(shifts: Sequence[Shift], total: Callable[[Shift], float]) -> Interval:
    """The mean over tokens of what `total` sums over a document's, and its bootstrap interval."""
    totals = np.array([total(shift) for shift in shifts])
    counts = np.array([shift.tokens for shift in shifts])
    drawn = np.random.default_rng(_SEED).integers(len(shifts), size=(_RESAMPLES, len(shifts)))
    means = totals[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.percentile(means, _TAILS)
    return Interval(float(totals.sum() / counts.sum()), float(low), float(high))


def _exponential(interval: Interval) -> Interval:
    return Interval(*(float(np.exp(bound)) for bound in (interval.value, interval.low, interval.high)))
