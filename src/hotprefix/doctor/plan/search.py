"""Simulates fleets until the smallest that meets the target is known, for every memory size and routing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from math import ceil

from hotprefix.doctor.plan.fleet import FleetOutcome, FleetSettings
from hotprefix.doctor.plan.load import Load
from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.doctor.plan.wish import PlanWish
from hotprefix.doctor.plan.workers import Workers
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.routing import Routing

_STEPS = (1.0, 1.2, 1.6)
_FULL = 0.98
"""Servers busier than this have no steady state worth waiting for."""
_MOST_ANSWERING = 0.95
_ENDLESS = 1 << 40

Place = tuple[int, Routing, int]
"""Memory, routing, replicas."""


@dataclass(frozen=True, slots=True)
class Point:
    """One fleet that was simulated."""

    memory: int
    routing: Routing
    replicas: int
    outcome: FleetOutcome
    time: float
    """The target's percentile of the time to first token."""

    @property
    def is_stable(self) -> bool:
        """Whether the servers keep up."""
        return self.outcome.busy < _FULL


class Search:
    """`told` hears before each pass over the trace, with how many fleets it feeds."""

    def __init__(
        self,
        load: Load,
        wish: PlanWish,
        times: ServiceTimes,
        advance: Advance = nothing,
        told: Callable[[int], object] = lambda _: None,
        workers: Workers | None = None,
    ) -> None:
        self.load = load
        self.wish = wish
        self.times = times
        self._advance = advance
        self._told = told
        self._workers = workers or Workers()
        self.points: dict[Place, Point] = {}

    def ideal(self) -> FleetOutcome:
        """Nobody waits, and one cache forgets nothing: what no fleet can beat."""
        settings = replace(self._settings(1, Routing.ROUND_ROBIN, 1), capacity=_ENDLESS, answering=0.0)
        return self._run([replace(settings, is_unqueued=True)])[0]

    def unqueued(self, memory: int, routing: Routing, replicas: int) -> FleetOutcome:
        """The same fleet, if nobody waited."""
        settings = self._settings(memory, routing, replicas)
        return self._run([replace(settings, is_unqueued=True)])[0]

    def run(self) -> None:
        """Fill `points`: for each memory and routing around the smallest fleet that meets the target."""
        lines = [(memory, routing) for memory in self.wish.memories for routing in self.wish.routings]
        least = self._least()
        wanted = {
            (memory, routing, min(self.wish.most, ceil(least[memory] * step)))
            for memory, routing in lines
            for step in _STEPS
        }
        self._simulate(wanted)
        while missing := [place for line in lines for place in self._between(*line, self._dearest())]:
            self._simulate(missing)

    def _dearest(self) -> Decimal | None:
        """What the best fleet so far costs; a dearer one need not be tried."""
        best = self.best()
        return None if best is None else self.wish.prices.of(best.replicas, best.memory)

    def best(self) -> Point | None:
        """The cheapest point that meets the target, as all larger fleets of its kind that were tried do; of
        equal ones that with the fewest replicas, then with the least memory, then the fastest."""
        lines = {(memory, routing) for memory, routing, _ in self.points}
        found = (self._smallest_good(self.line(*line)) for line in lines)
        return min((point for point in found if point is not None), key=self._rank, default=None)

    def line(self, memory: int, routing: Routing) -> list[Point]:
        """The points of one memory size and routing, the smallest fleet first."""
        own = (point for key, point in self.points.items() if key[:2] == (memory, routing))
        return sorted(own, key=lambda point: point.replicas)

    def fastest(self) -> Point:
        """The point with the lowest time, among those that keep up if there are any."""
        return min(self.points.values(), key=lambda point: (not point.is_stable, point.time))

    def meets(self, point: Point) -> bool:
        """Whether a point is good enough."""
        return point.is_stable and point.time <= self.wish.target

    def simulate(self, memory: int, routing: Routing, replicas: int) -> Point:
        """One point, simulated if it was not yet."""
        self._simulate([(memory, routing, replicas)])
        return self.points[memory, routing, replicas]

    def answering(self, replicas: int) -> float:
        """Share of the servers' time that answers take."""
        work = self.load.qps * self.load.mean_output * self.times.answer
        return work / (replicas * self.wish.servers)

    def _least(self) -> dict[int, int]:
        """By memory: replicas below which the servers can't keep up, even if one cache served all."""
        one = [self._settings(memory, Routing.ROUND_ROBIN, 1) for memory in self.wish.memories]
        outcomes = self._run([replace(settings, answering=0.0, is_unqueued=True) for settings in one])
        answers = self.load.qps * self.load.mean_output * self.times.answer
        servers = self.wish.servers
        return {
            memory: max(1, ceil((outcome.busy * servers + answers) / (servers * _FULL)))
            for memory, outcome in zip(self.wish.memories, outcomes, strict=True)
        }

    def _between(self, memory: int, routing: Routing, dearest: Decimal | None) -> list[Place]:
        """The fleet to try next on a line, if its smallest good one is not known yet, and may be the best."""
        line = self.line(memory, routing)
        good = self._smallest_good(line)
        if good is None:
            replicas = min(self.wish.most, 2 * line[-1].replicas)
        else:
            below = max((point.replicas for point in line if point.replicas < good.replicas), default=None)
            if below is None:  # the least that can keep up is enough
                return []
            replicas = (good.replicas + below) // 2
        if (memory, routing, replicas) in self.points:
            return []
        price = self.wish.prices.of(replicas, memory)
        return [] if dearest is not None and price > dearest else [(memory, routing, replicas)]

    def _smallest_good(self, line: list[Point]) -> Point | None:
        found = None
        for point in reversed(line):
            if not self.meets(point):
                break
            found = point
        return found

    def _rank(self, point: Point) -> tuple[Decimal, int, int, float]:
        return (
            self.wish.prices.of(point.replicas, point.memory),
            point.replicas,
            point.memory,
            point.time,
        )

    def _simulate(self, places: Iterable[Place]) -> None:
        todo = [place for place in dict.fromkeys(places) if place not in self.points]
        if not todo:
            return
        outcomes = self._run([self._settings(*place) for place in todo])
        for place, outcome in zip(todo, outcomes, strict=True):
            self.points[place] = Point(*place, outcome, outcome.at(self.wish.share))

    def _settings(self, memory: int, routing: Routing, replicas: int) -> FleetSettings:
        wish = self.wish
        return FleetSettings(
            replicas,
            wish.capacity(memory, self.load.source.block_size) if memory > 1 else 1,
            routing,
            wish.servers,
            wish.policy,
            wish.lifetime,
            min(self.answering(replicas), _MOST_ANSWERING),
            wish.warmup,
        )

    def _run(self, several: list[FleetSettings]) -> list[FleetOutcome]:
        self._told(len(several))
        return self._workers.run(self.load, self.times, several, self._advance)
