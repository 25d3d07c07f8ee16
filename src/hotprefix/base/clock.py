"""Time as a dependency: logic asks a clock, tests turn its hands."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> float:
        """Seconds on a clock that never goes back; only differences mean anything."""
        ...

    def wall(self) -> float:
        """Seconds since 1970-01-01 UTC, for showing to people."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> float:
        return time.monotonic()

    def wall(self) -> float:
        return time.time()


def pause(seconds: float) -> None:
    """Wait, on the machine's own clock."""
    time.sleep(seconds)


class ManualClock:
    """A clock that moves only when told; `wall` is its Unix time at the start, as `start` by default."""

    def __init__(self, start: float = 0.0, wall: float | None = None) -> None:
        self._now = start
        self._ahead = 0.0 if wall is None else wall - start

    def now(self) -> float:
        return self._now

    def wall(self) -> float:
        return self._now + self._ahead

    def advance(self, seconds: float) -> None:
        """Move forward by `seconds` (not negative)."""
        if seconds < 0:
            raise ValueError("time does not go back")
        self._now += seconds
