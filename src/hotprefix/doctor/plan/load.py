"""A trace as a load: its requests in their order, at the rate that is planned for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hotprefix.doctor.plan.errors import PlanError
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.request import TraceRequest
from hotprefix.traces.source import TraceSource
from hotprefix.traces.survey import Survey, survey


@dataclass(frozen=True, slots=True)
class Load:
    """`qps` requests a second on average, as uneven as in the trace.

    Requests at the very same time, which is how traces with coarse clocks write them, are spread evenly
    until the next time.
    """

    source: TraceSource
    survey: Survey
    qps: float

    @property
    def seconds(self) -> float:
        """From the first request to the last, at that rate."""
        return max(self.survey.requests - 1, 1) / self.qps

    @property
    def mean_output(self) -> float:
        """Tokens of an answer."""
        return self.survey.output / self.survey.requests

    def requests(self, advance: Advance = nothing) -> Iterator[TraceRequest]:
        """From time 0 on."""
        stretch = self.seconds / self.survey.seconds if self.survey.seconds else 0.0
        first: float | None = None
        tied: list[TraceRequest] = []
        for request in self.source.requests(advance):
            if first is None:
                first = request.at
            request.at = (request.at - first) * stretch if stretch else 0.0
            if tied and request.at > tied[0].at:
                yield from _spread(tied, request.at)
                tied.clear()
            tied.append(request)
        yield from _spread(tied, tied[0].at + len(tied) / self.qps if tied else 0.0)


def load_of(source: TraceSource, qps: float, advance: Advance = nothing) -> Load:
    """Read a trace once to know it. Raises `BrokenTrace`, and `PlanError` for a trace that tells nothing."""
    found = survey(source, advance)
    if found.requests < _FEWEST:
        raise PlanError(f"The trace has {found.requests} requests; a percentile needs {_FEWEST} at least.")
    return Load(source, found, qps)


_FEWEST = 100


def _spread(tied: list[TraceRequest], until: float) -> Iterator[TraceRequest]:
    start, step = (tied[0].at, (until - tied[0].at) / len(tied)) if tied else (0.0, 0.0)
    for number, request in enumerate(tied):
        request.at = start + number * step
        yield request
