"""One of the two things that are compared: its requests over a cache that keeps everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from hotprefix.diagnosis.reason import MissReport
from hotprefix.doctor.explain.log import LogExplanation
from hotprefix.doctor.explain.trial import Trial
from hotprefix.doctor.place import Place
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Renderer, UnrenderableRequest

_LINES = 100_000
"""Requests that are remembered one by one; of those behind them only the sums are."""


@dataclass(frozen=True, slots=True)
class Line:
    """One request: of its `tokens`, `read` could come from the cache; `report` says why no more could."""

    place: Place
    tokens: int
    read: int
    report: MissReport


@dataclass(slots=True)
class Side:
    """`name` says which it is; `lines` are its requests by what they are matched with on the other side."""

    name: str
    lines: dict[str, Line] = field(default_factory=dict)
    sums: LogExplanation = field(default_factory=LogExplanation)

    @property
    def tokens(self) -> int:
        """Prompt tokens of all requests."""
        return self.sums.tokens

    @property
    def read(self) -> int:
        """Of those, the ones that a cache that keeps everything would give."""
        return self.sums.expected

    @property
    def share(self) -> float:
        """The cacheable share, 0 to 1."""
        return self.read / self.tokens if self.tokens else 0.0


def keyed(
    requests: Iterable[Recorded], owner_of: Callable[[Recorded], str]
) -> Iterator[tuple[str, Recorded]]:
    """Requests with what they are matched by: their owner (a session or a file) and their number in it."""
    turns: Counter[str] = Counter()
    for recorded in requests:
        owner = owner_of(recorded)
        turns[owner] += 1
        yield f"{owner}#{turns[owner]}", recorded


def measure(name: str, renderer: Renderer, trial: Trial, requests: Iterable[tuple[str, Recorded]]) -> Side:
    """Run keyed requests in their order. Lifetimes and what vendors reported count for nothing here."""
    side = Side(name, sums=LogExplanation(notes=list(renderer.model.notes)))
    for key, recorded in requests:
        try:
            judged = trial.judge(renderer.render(timeless(recorded)))
        except UnrenderableRequest as error:
            side.sums.refuse(error)
            continue
        side.sums.add(judged)
        if len(side.lines) < _LINES:
            line = Line(recorded.place, judged.tokens, judged.expected.matched, judged.expected)
            side.lines[key] = line
    return side


def timeless(recorded: Recorded) -> Recorded:
    """The request without its times and without the usage of its answer."""
    response: Mapping[str, object] | None = None
    if recorded.response is not None:
        response = {key: value for key, value in recorded.response.items() if key != "usage"}
    return replace(recorded, response=response, at=None, first_token=None)
