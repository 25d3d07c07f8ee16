"""Rate limits: token buckets by key and tenant. Pure: the time comes as an argument."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from hotprefix.base.errors import RateLimited
from hotprefix.tenants.api_key import RateLimits

MINUTE = 60.0
_SUBJECTS = 10_000


@dataclass(frozen=True, slots=True)
class Subject:
    """Who is limited: `kind` is "key" or "tenant", `name` its id or name."""

    kind: str
    name: str
    limits: RateLimits


class TokenBucket:
    """Holds at most `per_minute` units and refills at that rate. Times in seconds, never going back.

    A charge above the capacity passes when the bucket is full and leaves a debt: what is asked for
    is never impossible, and the average holds all the same.
    """

    __slots__ = ("_at", "_level", "per_minute")

    def __init__(self, per_minute: int, now: float) -> None:
        self.per_minute = per_minute
        self._level = float(per_minute)
        self._at = now

    def wait(self, units: int, now: float) -> float:
        """Seconds until `units` may be taken; 0 if they may be now."""
        missing = min(units, self.per_minute) - self.level(now)
        # A rounding error of the refill must not make anybody wait.
        return missing * MINUTE / self.per_minute if missing > 1e-9 * self.per_minute else 0.0

    def take(self, units: int, now: float) -> None:
        """Take `units`, into debt if need be."""
        self._level = self.level(now) - units
        self._at = now

    def level(self, now: float) -> float:
        """Units that are there."""
        refill = max(0.0, now - self._at) * self.per_minute / MINUTE
        return min(float(self.per_minute), self._level + refill)


class _Meter:
    """The buckets of one subject, and its requests in flight."""

    __slots__ = ("in_flight", "requests", "tokens")

    def __init__(self) -> None:
        self.requests: TokenBucket | None = None
        self.tokens: TokenBucket | None = None
        self.in_flight = 0

    def adapt(self, limits: RateLimits, now: float) -> None:
        """Limits may change between two requests; a changed bucket begins full."""
        self.requests = _fitting(self.requests, limits.requests_per_minute, now)
        self.tokens = _fitting(self.tokens, limits.tokens_per_minute, now)

    def is_idle(self, now: float) -> bool:
        """Whether a new meter would say the same."""
        buckets = (self.requests, self.tokens)
        return not self.in_flight and all(b is None or b.level(now) >= b.per_minute for b in buckets)


class Visit:
    """A request that was let in; leave exactly once. It keeps the meters that it counts in."""

    __slots__ = ("left", "meters")

    def __init__(self, meters: Sequence[tuple[Subject, _Meter]]) -> None:
        self.meters = tuple(meters)
        self.left = False


class RateLimiter:
    """Lets requests in, charges their tokens, and knows who is in. Not thread-safe: one event loop's."""

    def __init__(self, capacity: int = _SUBJECTS) -> None:
        self._capacity = capacity
        self._meters: OrderedDict[tuple[str, str], _Meter] = OrderedDict()

    def __len__(self) -> int:
        """Subjects that are remembered."""
        return len(self._meters)

    def enter(self, subjects: Sequence[Subject], now: float) -> Visit:
        """Count a request for all of `subjects`, or for none. Raises `RateLimited`."""
        limited = [subject for subject in subjects if not subject.limits.is_none]
        meters = [(subject, self._meter(subject, now)) for subject in limited]
        for subject, meter in meters:
            most = subject.limits.concurrent
            if most is not None and meter.in_flight >= most:
                raise RateLimited(
                    f"The {subject.kind} '{subject.name}' may have {most:,} requests running at a time, "
                    "and it has. Send this one again when one of them has ended."
                )
            if meter.requests is not None:
                _require(subject, meter.requests, 1, "requests", now)
        for _, meter in meters:
            meter.in_flight += 1
            if meter.requests is not None:
                meter.requests.take(1, now)
        return Visit(meters)

    def charge(self, visit: Visit, prompt_tokens: int, now: float) -> None:
        """Count the tokens of a visit's prompt for all its subjects, or for none. Raises `RateLimited`."""
        buckets = [(subject, meter.tokens) for subject, meter in visit.meters]
        for subject, bucket in buckets:
            if bucket is not None:
                _require(subject, bucket, prompt_tokens, "prompt tokens", now)
        for _, bucket in buckets:
            if bucket is not None:
                bucket.take(prompt_tokens, now)

    def leave(self, visit: Visit) -> None:
        """The request has ended, however that was; doing it twice changes nothing."""
        if visit.left:
            return
        visit.left = True
        for _, meter in visit.meters:
            meter.in_flight -= 1

    def _meter(self, subject: Subject, now: float) -> _Meter:
        name = (subject.kind, subject.name)
        meter = self._meters.get(name)
        if meter is None:
            self._make_room(now)
            meter = self._meters[name] = _Meter()
        self._meters.move_to_end(name)
        meter.adapt(subject.limits, now)
        return meter

    def _make_room(self, now: float) -> None:
        """Forget meters that say nothing; if all say something, the longest unused with nobody in."""
        if len(self._meters) < self._capacity:
            return
        for name in [name for name, meter in self._meters.items() if meter.is_idle(now)]:
            del self._meters[name]
        if len(self._meters) >= self._capacity:
            unused = next((name for name, meter in self._meters.items() if not meter.in_flight), None)
            if unused is None:
                raise RateLimited("Too many keys and tenants have requests running. Try again soon.")
            del self._meters[unused]


def _fitting(bucket: TokenBucket | None, per_minute: int | None, now: float) -> TokenBucket | None:
    if per_minute is None:
        return None
    return bucket if bucket is not None and bucket.per_minute == per_minute else TokenBucket(per_minute, now)


def _require(subject: Subject, bucket: TokenBucket, units: int, what: str, now: float) -> None:
    wait = bucket.wait(units, now)
    if wait:
        seconds = max(1, math.ceil(wait))
        raise RateLimited(
            f"The {subject.kind} '{subject.name}' may send {bucket.per_minute:,} {what} a minute, and "
            f"they are used up. Send this request again in {seconds} s.",
            retry_after=seconds,
        )
