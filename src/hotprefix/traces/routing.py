"""Which replica a request goes to."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import cycle
from typing import Protocol

from hotprefix.base.ids import BlockKey
from hotprefix.traces.replica import Replica


class Routing(StrEnum):
    """Ways to spread requests over replicas."""

    ROUND_ROBIN = "round-robin"
    LEAST_LOADED = "least-loaded"
    AFFINITY = "affinity"


class Router(Protocol):
    """Chooses a replica."""

    def choose(self, scope: str, keys: Sequence[BlockKey], now: float) -> Replica: ...


class RoundRobin:
    """Each in turn."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._turn = cycle(replicas)

    def choose(self, scope: str, keys: Sequence[BlockKey], now: float) -> Replica:
        return next(self._turn)


class LeastLoaded:
    """The one that is free first."""

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self._replicas = replicas

    def choose(self, scope: str, keys: Sequence[BlockKey], now: float) -> Replica:
        return min(self._replicas, key=lambda replica: max(now, replica.busy_until))


class Affinity:
    """The one where the first token comes soonest: known blocks are weighed against the queue.

    `block_seconds` is what computing a block takes. Equal ones are told apart by how full they are.
    """

    def __init__(self, replicas: Sequence[Replica], block_seconds: float) -> None:
        self._replicas = replicas
        self._block_seconds = block_seconds

    def choose(self, scope: str, keys: Sequence[BlockKey], now: float) -> Replica:
        def wait(replica: Replica) -> tuple[float, int]:
            missing = len(keys) - replica.depth(scope, keys)
            return max(now, replica.busy_until) + missing * self._block_seconds, replica.size

        return min(self._replicas, key=wait)


def build_router(routing: Routing, replicas: Sequence[Replica], block_seconds: float) -> Router:
    """The router of a name."""
    match routing:
        case Routing.ROUND_ROBIN:
            return RoundRobin(replicas)
        case Routing.LEAST_LOADED:
            return LeastLoaded(replicas)
        case Routing.AFFINITY:
            return Affinity(replicas, block_seconds)
