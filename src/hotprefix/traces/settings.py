"""One set of circumstances that a trace is replayed under."""

from __future__ import annotations

from dataclasses import dataclass, field

from hotprefix.kv.policy import POLICIES
from hotprefix.traces.errors import BadReplay
from hotprefix.traces.latency import SpeedModel
from hotprefix.traces.provider_rules import ProviderRules
from hotprefix.traces.routing import Routing


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """What to replay under; sizes are of one replica, in blocks of `merged` blocks of the trace.

    `labels` say in words what this run stands for, for tables.
    """

    capacity: int
    policy: str = "adaptive"
    merged: int = 1
    lifetime: float | None = None
    tier: int = 0
    replicas: int = 1
    routing: Routing = Routing.AFFINITY
    rules: ProviderRules | None = None
    speed: SpeedModel = field(default_factory=SpeedModel)
    labels: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.policy not in POLICIES:
            raise BadReplay(
                f"There is no policy {self.policy!r}. Choose one of: {', '.join(sorted(POLICIES))}."
            )
        if self.capacity < 1 or self.merged < 1 or self.replicas < 1 or self.tier < 0:
            raise BadReplay("A cache has at least one block, and there is at least one replica.")

    @property
    def effective_lifetime(self) -> float | None:
        """Seconds: the shorter of the own lifetime and the vendor's."""
        given = [self.lifetime, self.rules.lifetime if self.rules is not None else None]
        return min((seconds for seconds in given if seconds is not None), default=None)
