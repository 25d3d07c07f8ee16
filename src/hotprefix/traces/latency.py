"""Times to first token: a linear model, and their percentiles in little memory."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import exp, floor, log

_STEP = log(1.01)
"""Times within one percent are one."""
_LEAST = 1e-7


@dataclass(frozen=True, slots=True)
class SpeedModel:
    """Seconds that a prompt takes: a fixed part, and by token as it was computed, restored or found.

    The defaults are a small model's on two cores; give your own server's, which `hotprefix bench` measures.
    """

    fixed: float = 0.01
    computed: float = 0.002
    restored: float = 0.00002
    found: float = 0.000002

    def seconds(self, computed: int, restored: int, found: int) -> float:
        """Time to first token of a prompt with so many tokens of each kind, the queue left out."""
        return self.fixed + computed * self.computed + restored * self.restored + found * self.found


class Percentiles:
    """Counts times in steps of one percent."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()
        self._sum = 0.0
        self._number = 0

    def add(self, seconds: float) -> None:
        """Count one."""
        self._counts[floor(log(max(seconds, _LEAST)) / _STEP)] += 1
        self._sum += seconds
        self._number += 1

    @property
    def mean(self) -> float:
        """The mean; 0 of nothing."""
        return self._sum / self._number if self._number else 0.0

    def at(self, share: float) -> float:
        """The time that this share of all does not exceed, within one percent; 0 of nothing."""
        left = share * self._number
        for step in sorted(self._counts):
            left -= self._counts[step]
            if left <= 0:
                return exp((step + 0.5) * _STEP)
        return 0.0
