"""Replicas under a load: what each request found, waited and took.

A replica has `servers` that compute one prompt at a time, first come first served. Answers are generated
between prompts: their share of the time slows every prompt down by as much. A request is sent to a replica
when it comes and stays there.
"""

from __future__ import annotations

import heapq
from array import array
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.traces.replica import Replica
from hotprefix.traces.request import TraceRequest
from hotprefix.traces.routing import Routing, build_router

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FleetSettings:
    """`capacity` is that of one replica, in blocks; `answering` the share of a server's time that answers
    take, below 1; `warmup` the part of the requests that fill the caches and are not judged."""

    replicas: int
    capacity: int
    routing: Routing
    servers: int = 1
    policy: str = "adaptive"
    lifetime: float | None = None
    answering: float = 0.0
    warmup: float = 0.1
    is_unqueued: bool = False


@dataclass(frozen=True, slots=True)
class FleetOutcome:
    """`waits` and `works` of every judged request, in seconds: their sum is its time to first token.

    `busy` is the share of the servers' time in use, which is 1 or more where the queue grows without end;
    `computed` the tokens computed in a second by one replica.
    """

    settings: FleetSettings
    waits: Floats
    works: Floats
    hit_rate: float
    busy: float
    computed: float

    def at(self, share: float) -> float:
        """The time to first token that this share of the requests does not exceed."""
        return float(np.quantile(self.waits + self.works, share))

    def slowest(self, share: float) -> tuple[float, float]:
        """Mean wait and mean work of the requests beyond that time."""
        total = self.waits + self.works
        chosen = total >= np.quantile(total, share)
        return float(self.waits[chosen].mean()), float(self.works[chosen].mean())


class Fleet:
    """One simulation. Feed it requests in the order of their times."""

    def __init__(self, settings: FleetSettings, block: int, times: ServiceTimes, expected: int) -> None:
        self.settings = settings
        self._block = block
        self._times = times
        self._skipped = int(expected * settings.warmup)
        self._slower = 1 / (1 - settings.answering)
        self._replicas = [
            Replica(settings.policy, settings.capacity, settings.lifetime) for _ in range(settings.replicas)
        ]
        self._free = {id(replica): [0.0] * settings.servers for replica in self._replicas}
        self._router = build_router(settings.routing, self._replicas, block * times.prompt.computed)
        self._waits, self._works = array("d"), array("d")
        self._seen = self._tokens = self._hits = self._missed = 0
        self._busy = self._first = self._last = 0.0

    def serve(self, request: TraceRequest) -> None:
        """Take one request."""
        keys, now, prompt = request.keys, request.at, request.input
        replica = self._replicas[0]
        if len(self._replicas) > 1:
            replica = self._router.choose(request.scope, keys, now)
        hit = min(replica.serve(request.scope, keys, now).hits * self._block, prompt)
        alone = self._times.prompt.seconds(prompt - hit, 0, hit)
        work, start = alone * self._slower, now
        if not self.settings.is_unqueued:
            free = self._free[id(replica)]
            start = max(now, free[0])
            heapq.heapreplace(free, start + work)
            replica.busy_until = free[0]
        self._last = now
        self._seen += 1
        if self._seen > self._skipped:
            if not self._works:
                self._first = now
            self._busy += alone
            self._missed += prompt - hit
            self._tokens += prompt
            self._hits += hit
            self._waits.append(start - now)
            self._works.append(work)

    def outcome(self) -> FleetOutcome:
        """What happened so far."""
        settings = self.settings
        seconds = max(self._last - self._first, 1e-9)
        return FleetOutcome(
            settings,
            np.frombuffer(self._waits, dtype=np.float64),
            np.frombuffer(self._works, dtype=np.float64),
            self._hits / self._tokens if self._tokens else 0.0,
            self._busy / (seconds * settings.replicas * settings.servers) + settings.answering,
            self._missed / (seconds * settings.replicas),
        )
