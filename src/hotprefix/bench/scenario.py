"""What every scenario is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from hotprefix.bench.client import BenchClient
from hotprefix.bench.findings import Bound, Target
from hotprefix.bench.workload import Sizes, Workload

Tick = Callable[[], None]
"""Called after each step of a task."""


class Progress(Protocol):
    """Shows how far a run is."""

    def task(self, title: str, steps: int) -> Tick:
        """A new bar of `steps` steps."""
        ...


class Peer(Protocol):
    """Another engine that does the same work, in process; `about` says which and how set up."""

    about: str

    async def seconds(self, prompts: Sequence[Sequence[int]], out: int) -> float:
        """Time for `out` greedy tokens after each prompt, all asked at once."""
        ...


@dataclass(frozen=True, slots=True)
class Trial:
    """Servers, work and settings of a run.

    `plain` is a server without a cache. `judged` is false for quick runs, whose figures
    prove nothing: their targets stay open.
    """

    cached: BenchClient
    plain: BenchClient
    sizes: Sizes
    work: Workload
    progress: Progress
    seed: int
    judged: bool
    peer: Peer | None = None

    def target(self, name: str, unit: str, value: float | None, bound: Bound, limit: float) -> Target:
        """A target that this run may judge."""
        return Target(name, unit, value if self.judged else None, bound, limit)
