"""What a benchmark found, in a form that tables, plots and JSON are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median


@dataclass(frozen=True, slots=True)
class Measure:
    """One quantity, measured once or several times; `unit` is for instance `s` or `%`."""

    name: str
    unit: str
    values: tuple[float, ...]

    @property
    def middle(self) -> float:
        """The median."""
        return median(self.values)


class Bound(StrEnum):
    """Which side of a target's limit is good."""

    AT_MOST = "at most"
    AT_LEAST = "at least"


@dataclass(frozen=True, slots=True)
class Target:
    """Something that has to hold. `value` None: this run does not judge it."""

    name: str
    unit: str
    value: float | None
    bound: Bound
    limit: float

    @property
    def met(self) -> bool | None:
        """Whether it holds; None if this run does not judge it."""
        if self.value is None:
            return None
        return self.value <= self.limit if self.bound is Bound.AT_MOST else self.value >= self.limit


class ChartKind(StrEnum):
    """How series are drawn."""

    BARS = "bars"
    LINES = "lines"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Series:
    """Numbers of one name. Bars: `y` are repeats, the bar is their median. Histograms use `y` only."""

    name: str
    y: tuple[float, ...]
    x: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Chart:
    """One figure. `marks` are horizontal lines (vertical in a histogram) with their names."""

    kind: ChartKind
    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    marks: tuple[tuple[str, float], ...] = ()
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """The outcome of one scenario. `about` says what was done, `facts` what else is worth knowing."""

    name: str
    title: str
    about: str
    measures: tuple[Measure, ...]
    targets: tuple[Target, ...] = ()
    charts: tuple[Chart, ...] = ()
    facts: dict[str, float | int | str] = field(default_factory=dict)


def bars(title: str, measures: Sequence[Measure], y_label: str, *, log_y: bool = False) -> Chart:
    """A chart with one bar for each measure."""
    series = tuple(Series(measure.name, measure.values) for measure in measures)
    return Chart(ChartKind.BARS, title, "", y_label, series, log_y=log_y)
