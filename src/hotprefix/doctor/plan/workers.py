"""Fleets simulated side by side, in processes of their own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from types import TracebackType
from typing import Self

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.doctor.plan.fleet import Fleet, FleetOutcome, FleetSettings
from hotprefix.doctor.plan.load import Load
from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.traces.lines import Advance, nothing

_WORTH = 20_000
"""Requests times fleets: below, a pass is over before a process has begun."""


def simulate(
    load: Load, times: ServiceTimes, several: Sequence[FleetSettings], advance: Advance = nothing
) -> list[FleetOutcome]:
    """Feed the load to all fleets, reading the trace once."""
    fleets = [Fleet(settings, load.source.block_size, times, load.survey.requests) for settings in several]
    for request in load.requests(advance):
        for fleet in fleets:
            fleet.serve(request)
    return [fleet.outcome() for fleet in fleets]


class Workers:
    """`jobs` processes, started when there is work for them. One job is this process."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def run(
        self, load: Load, times: ServiceTimes, several: Sequence[FleetSettings], advance: Advance = nothing
    ) -> list[FleetOutcome]:
        """The outcomes in order; `advance` is told `load.source.bytes` in all. Raises `PlanError`."""
        count = min(self._jobs, len(several))
        if count < 2 or load.survey.requests * len(several) < _WORTH:
            return simulate(load, times, several, advance)
        if self._pool is None:
            self._pool = ProcessPoolExecutor(self._jobs, get_context("spawn"))
        # Many replicas take longer: dealt out in turn, every process gets some of each.
        groups = [range(number, len(several), count) for number in range(count)]
        futures = [
            self._pool.submit(simulate, load, times, [several[place] for place in group]) for group in groups
        ]
        found: dict[int, FleetOutcome] = {}
        try:
            for group, future in zip(groups, futures, strict=True):
                found.update(zip(group, future.result(), strict=True))
                advance(load.source.bytes // count)
        except BrokenProcessPool as error:
            raise PlanError("A simulating process has died. Is there enough memory? Try --jobs 1.") from error
        return [found[place] for place in range(len(several))]
