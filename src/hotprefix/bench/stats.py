"""The few statistics that a fair comparison needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_DRAWS = 4000


def bootstrap_median(values: Sequence[float], seed: int, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the median of `values`."""
    sample = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    medians = np.median(rng.choice(sample, size=(_DRAWS, len(sample))), axis=1)
    rest = (1 - confidence) / 2
    low, high = np.quantile(medians, [rest, 1 - rest])
    return float(low), float(high)


def interval_of_mean(values: Sequence[float], seed: int, confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean of few `values`, two at least: a bootstrap would be too narrow."""
    sample = np.asarray(values, dtype=np.float64)
    draws = np.random.default_rng(seed).standard_t(len(sample) - 1, size=1_000_000)
    margin = np.quantile(draws, (1 + confidence) / 2) * sample.std(ddof=1) / np.sqrt(len(sample))
    return float(sample.mean() - margin), float(sample.mean() + margin)


def saved_percent(before: float, after: float) -> float:
    """How much less `after` is than `before`, in per cent."""
    return 100 * (1 - after / before)
