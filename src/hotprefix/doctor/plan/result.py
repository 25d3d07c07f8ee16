"""A plan, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from hotprefix.doctor.plan.fleet import FleetOutcome
from hotprefix.doctor.plan.load import Load
from hotprefix.doctor.plan.search import Point
from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.doctor.plan.wish import PlanWish


class Limit(StrEnum):
    """What the time to first token mostly consists of, for the slowest requests."""

    QUEUE = "waiting for other requests"
    COMPUTE = "computing prompts that no cache knows"
    MEMORY = "computing prompts that were evicted"
    ANSWERS = "answers that take the servers' time"


@dataclass(frozen=True, slots=True)
class Refusal:
    """The target can't be met. `reachable` is the lowest time that can, in seconds, `at` the fleet that has
    it, None where no fleet could do better at all."""

    why: str
    reachable: float
    at: Point | None


@dataclass(frozen=True, slots=True)
class CapacityPlan:
    """`chosen` None: see `refusal`. `points` are all fleets that were simulated; `ideal` is one cache that
    forgets nothing with nobody waiting. `wait` and `work` are the means, in seconds, of the requests beyond
    the percentile."""

    load: Load
    wish: PlanWish
    times: ServiceTimes
    ideal: FleetOutcome
    points: tuple[Point, ...]
    chosen: Point | None
    refusal: Refusal | None
    limit: Limit | None
    wait: float
    work: float
    notes: tuple[str, ...]

    @property
    def cost(self) -> Decimal | None:
        """Money an hour."""
        chosen = self.chosen
        return None if chosen is None else self.wish.prices.of(chosen.replicas, chosen.memory)
