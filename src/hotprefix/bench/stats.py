"""The few statistics that a fair comparison needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

_DRAWS = 4000


def bootstrap_median(values: Sequence[float], seed: int, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the median of `values`."""
    return _bootstrap(np.median, values, seed, confidence)


def bootstrap_mean(values: Sequence[float], seed: int, confidence: float = 0.95) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of `values`."""
    return _bootstrap(np.mean, values, seed, confidence)


def saved_percent(before: float, after: float) -> float:
    """How much less `after` is than `before`, in per cent."""
    return 100 * (1 - after / before)


def _bootstrap(
    statistic: Callable[..., NDArray[np.float64]], values: Sequence[float], seed: int, confidence: float
) -> tuple[float, float]:
    sample = np.asarray(values, dtype=np.float64)
    rng = np.random.default_rng(seed)
    found = statistic(rng.choice(sample, size=(_DRAWS, len(sample))), axis=1)
    rest = (1 - confidence) / 2
    low, high = np.quantile(found, [rest, 1 - rest])
    return float(low), float(high)
