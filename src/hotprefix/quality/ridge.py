"""Linear regression with a penalty on large weights, over rows that come bit by bit."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_LEAST_SPREAD = 1e-6


class Ridge:
    """Predicts a number from `features` others. Keeps sums, not rows."""

    def __init__(self, features: int) -> None:
        self._count = 0
        # A column of ones and the target are carried along: all sums are in one matrix.
        self._products = np.zeros((features + 2, features + 2))

    def add(self, rows: Floats, targets: Floats) -> None:
        """Rows [n, features] and what belongs to each."""
        wide = np.concatenate((rows, np.ones((len(rows), 1)), targets[:, None]), axis=1).astype(np.float64)
        self._products += wide.T @ wide
        self._count += len(rows)

    def fit(self, penalty: float) -> tuple[Floats, float]:
        """Weights and bias. `penalty` is relative to the features' variance and the number of rows."""
        means = self._products[:-2, -2] / self._count
        mean = self._products[-1, -2] / self._count
        covariance = self._products[:-2, :-2] / self._count - np.outer(means, means)
        along = self._products[:-2, -1] / self._count - means * mean
        spreads = np.sqrt(np.maximum(np.diag(covariance), 0)) + _LEAST_SPREAD
        scaled = covariance / np.outer(spreads, spreads) + penalty * np.eye(len(means))
        weights = np.linalg.solve(scaled, along / spreads) / spreads
        return weights.astype(np.float32), float(mean - means @ weights)

    @property
    def mean(self) -> float:
        """The mean of the targets."""
        return float(self._products[-1, -2] / self._count)
