"""When blocks come back: ages at which they were used again, by class, and what that says of others.

All ages are in ticks of the tree. A sample that was given up, or that waits still, counts as
not reused up to its age, so short waits do not look commoner than they are.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

AGES = 32
"""Steps of age, geometric from `FIRST_AGE` to `LAST_AGE` capacities; the first begins at 0."""
FIRST_AGE = 1 / 64
LAST_AGE = 4
PRIOR = 60.0
"""Runs of samples that a class has to bring before it counts as much as all classes together.

The blocks of a prompt come back together: a run of them is one piece of evidence, however long it is.
"""
DECAY = 0.95
"""What older samples weigh after each look at them."""
_MOST_HAZARD = 0.999


class ReuseStats:
    """Counts of reuse by class and age; `value_of` is what keeping a block of that class and age promises.

    The value is Gittins' index: the most uses per block and tick that any length of further keeping
    yields. It never rises with age, so blocks of one class rank as LRU would rank them.
    """

    def __init__(self, capacity: int, classes: int) -> None:
        self._edges: list[float] = [0.0, *(np.geomspace(FIRST_AGE, LAST_AGE, AGES) * capacity).tolist()]
        # The last column is for all ages beyond.
        self._reused = [[0.0] * (AGES + 1) for _ in range(classes)]
        self._ended = [[0.0] * (AGES + 1) for _ in range(classes)]
        # Samples of reuse, how many runs of equal ones they came in, and the last of them.
        self._samples, self._runs = 0.0, 0.0
        self._last: tuple[int, float] | None = None
        # By class: the value at each edge, and how it changes from there on. At first all are worth the same.
        self._values: list[list[float]] = [[0.0] * (AGES + 1) for _ in range(classes)]
        self._slopes: list[list[float]] = [[0.0] * (AGES + 1) for _ in range(classes)]

    @property
    def horizon(self) -> float:
        """Ages from here on are not told apart."""
        return self._edges[-1]

    def reused(self, kind: int, age: float) -> None:
        """A block of class `kind` was used again at `age`."""
        self._reused[kind][bisect_right(self._edges, age) - 1] += 1
        self._samples += 1
        if (kind, age) != self._last:
            self._last = (kind, age)
            self._runs += 1

    def ended(self, kind: int, age: float) -> None:
        """One was not, and nobody will look any more."""
        self._ended[kind][bisect_right(self._edges, age) - 1] += 1

    def value_of(self, kind: int, age: float) -> float:
        """Uses per block and tick that keeping promises."""
        step = bisect_right(self._edges, age) - 1
        return self._values[kind][step] + (age - self._edges[step]) * self._slopes[kind][step]

    def learn(self, kinds: Sequence[int], ages: Sequence[float]) -> None:
        """Work out the values anew; the arguments are samples that may be used again yet."""
        edges, reused, ended = np.array(self._edges), np.array(self._reused), np.array(self._ended)
        steps = np.searchsorted(edges, np.array(ages, np.float64), side="right") - 1
        np.add.at(ended, (np.array(kinds, np.int64), steps), 1)
        prior = PRIOR * self._samples / self._runs if self._runs else PRIOR
        values = _indices(_hazards(reused, ended, prior), edges)
        self._values = values.tolist()
        slopes = np.diff(values, axis=1) / np.diff(edges)
        self._slopes = np.hstack([slopes, np.zeros((len(values), 1))]).tolist()
        self._reused = (reused * DECAY).tolist()
        self._ended = [[count * DECAY for count in row] for row in self._ended]
        self._samples, self._runs = self._samples * DECAY, self._runs * DECAY


def _hazards(reused: NDArray[np.float64], ended: NDArray[np.float64], prior: float) -> NDArray[np.float64]:
    """Chance of a use in each step of age, given none before.

    A class leans on its pair (classes 2n and 2n + 1), a pair on all classes together, by `prior` samples.
    """
    left = np.cumsum((reused + ended)[:, ::-1], axis=1)[:, ::-1][:, :AGES]
    reused = reused[:, :AGES]
    common = (reused.sum(0) + 1e-3) / (left.sum(0) + 1)
    paired = (reused[::2] + reused[1::2] + prior * common) / (left[::2] + left[1::2] + prior)
    single = (reused + prior * np.repeat(paired, 2, axis=0)) / (left + prior)
    return np.minimum(_MOST_HAZARD, single)


def _indices(hazards: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.float64]:
    """Gittins' index of each class at each edge of age, never rising."""
    start = np.ones((len(hazards), 1))
    unused = np.hstack([start, np.cumprod(1 - hazards, axis=1)])
    time = np.cumsum((unused[:, :-1] + unused[:, 1:]) / 2 * np.diff(edges), axis=1)
    kept = np.hstack([start * 0, time])
    # [class, from, to]: uses gained and block-ticks spent by keeping from one edge to a later one.
    gained = unused[:, :, None] - unused[:, None, :]
    spent = kept[:, None, :] - kept[:, :, None]
    later = spent > 0
    rates = np.where(later, gained / np.where(later, spent, 1), 0).max(axis=2)
    return np.maximum.accumulate(rates[:, ::-1], axis=1)[:, ::-1]
