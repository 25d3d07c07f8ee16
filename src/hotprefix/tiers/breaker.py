"""Whether to call something that has failed of late."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from threading import Lock

from hotprefix.base.clock import Clock


@dataclass(frozen=True, slots=True)
class BreakerRules:
    """After `failures` calls in a row that failed or took longer than `slow_seconds`, no call is made
    for `pause_seconds`. Then one is: if it fails too, the pause doubles, up to `longest_pause`. A call that
    has not come back for `stuck_seconds` may never do so."""

    failures: int = 3
    slow_seconds: float = 2.0
    pause_seconds: float = 1.0
    longest_pause: float = 60.0
    stuck_seconds: float = 10.0


class Leave(Enum):
    """What `Breaker.enter` says."""

    CALL = "go on"
    PROBE = "go on: this call decides for all"
    NO_CALL = "do not"


class Breaker:
    """Closed: calls are made. Open: they are not. Thread-safe."""

    def __init__(self, clock: Clock, rules: BreakerRules) -> None:
        self._clock = clock
        self._rules = rules
        self._lock = Lock()
        self._failed = 0
        self._pause = rules.pause_seconds
        self._open_until: float | None = None
        self._is_probing = False

    @property
    def is_open(self) -> bool:
        """Whether the last calls failed."""
        return self._open_until is not None

    @property
    def lets_in(self) -> bool:
        """Whether a call would be made now."""
        with self._lock:
            return self._lets_in()

    def enter(self) -> Leave:
        """Before a call. Unless it is `NO_CALL`, `leave` has to follow."""
        with self._lock:
            if self._open_until is None:
                return Leave.CALL
            if not self._lets_in():
                return Leave.NO_CALL
            self._is_probing = True
            return Leave.PROBE

    def leave(self, how: Leave, seconds: float | None) -> None:
        """After a call that took so long; None if it failed."""
        is_good = seconds is not None and seconds <= self._rules.slow_seconds
        with self._lock:
            if how is Leave.PROBE:
                self._is_probing = False
                self._pause = min(2 * self._pause, self._rules.longest_pause)
                self._open_until = self._clock.now() + self._pause
            if not is_good:
                self._failed += 1
                if self._open_until is None and self._failed >= self._rules.failures:
                    self._open_until = self._clock.now() + self._pause
            elif how is Leave.PROBE or self._open_until is None:
                # A call from before it opened says nothing new.
                self._failed = 0
                self._pause = self._rules.pause_seconds
                self._open_until = None

    def _lets_in(self) -> bool:
        is_due = self._open_until is None or self._clock.now() >= self._open_until
        return is_due and not self._is_probing
