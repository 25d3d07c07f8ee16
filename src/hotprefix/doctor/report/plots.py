"""Plots as SVG within the page: colours come from its style, so they are light or dark with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log10

from markupsafe import Markup

Point = tuple[float, float | None]
_WIDTH, _HEIGHT = 760, 260
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 12, 36
_RECT = Markup(
    '<rect class="{}" x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}"><title>{}</title></rect>'
)
_DOT = Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="3"><title>{}</title></circle>')
_GRID = Markup('<path class="grid" d="M{} {:.1f}H{}"/>')
_TICK = Markup('<text class="tick" x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>')
_BAR = Markup('<svg class="bar" viewBox="0 0 {} {}" role="img" aria-label="{}" preserveAspectRatio="none">')
_PLOT = Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">')
_END = Markup("</svg>")


@dataclass(frozen=True, slots=True)
class Line:
    """A line through `points` (x, y); y is None where nothing is known. `style` is a class of the page."""

    name: Markup
    points: Sequence[Point]
    style: str
    told: Sequence[str]


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`, with a mark at each of `ticks`, on a logarithmic scale if `is_log`."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    is_log: bool = False

    def at(self, value: float, start: float, end: float) -> float:
        """Where a value lies between `start` and `end`."""
        low, high, value = (
            (log10(self.low), log10(self.high), log10(max(value, self.low)))
            if self.is_log
            else (self.low, self.high, value)
        )
        return start if high == low else start + (value - low) / (high - low) * (end - start)


def line_plot(label: str, lines: Sequence[Line], x: Axis, y: Axis, bars: Line | None = None) -> Markup:
    """Lines over a common x; `bars` stand behind them, on a scale of their own."""
    parts = [*_grid(x, y)]
    if bars is not None:
        parts += _bars(bars, x)
    for line in lines:
        parts += _line(line, x, y)
    return _figure(label, parts) + _legend([*lines, *([bars] if bars is not None else [])])


def share_bar(label: str, parts: Sequence[tuple[str, float, str]]) -> Markup:
    """One bar of several parts: text for the pointer, share of the whole, class of the page."""
    height, start = 34, 0.0
    drawn = [_BAR.format(_WIDTH, height, label)]
    for told, share, style in parts:
        drawn.append(_RECT.format(style, start * _WIDTH, 0.0, max(0.0, share * _WIDTH), height, told))
        start += share
    return Markup("").join([*drawn, _END])


def time_axis(first: float, last: float, told: Callable[[float], str]) -> Axis:
    """Five marks between two times."""
    steps = 4 if last > first else 0
    marks = [first + (last - first) * step / steps for step in range(steps + 1)] if steps else [first]
    return Axis(first, last if last > first else first + 1, [(at, told(at)) for at in marks])


def share_axis() -> Axis:
    """From nothing to all."""
    return Axis(0.0, 1.0, [(tick / 4, f"{tick * 25} %") for tick in range(5)])


def log_axis(values: Sequence[float], told: Callable[[float], str]) -> Axis:
    """Powers of ten, and halves and fifths of them, around positive values."""
    low, high = min(values), max(values)
    ticks = [base * 10.0**power for power in range(-6, 6) for base in (1, 2, 5)]
    below = max((tick for tick in ticks if tick <= low), default=low)
    above = min((tick for tick in ticks if tick >= high), default=high)
    if above == below:
        above = below * 10
    inner = [tick for tick in ticks if below <= tick <= above]
    step = -(-len(inner) // 7)
    return Axis(below, above, [(tick, told(tick)) for tick in inner[::step]], is_log=True)


def _grid(x: Axis, y: Axis) -> list[Markup]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    parts = []
    for value, name in y.ticks:
        at = y.at(value, bottom, _TOP)
        parts += [_GRID.format(_LEFT, at, right), _TICK.format(_LEFT - 8, at + 4, "end", name)]
    for number, (value, name) in enumerate(x.ticks):
        anchor = "start" if number == 0 else "end" if number == len(x.ticks) - 1 else "middle"
        parts.append(_TICK.format(x.at(value, _LEFT, right), _HEIGHT - 12, anchor, name))
    return parts


def _line(line: Line, x: Axis, y: Axis) -> list[Markup]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    placed = [
        (x.at(at, _LEFT, right), None if value is None else y.at(value, bottom, _TOP))
        for at, value in line.points
    ]
    steps = [
        f"M{one[0]:.1f} {one[1]:.1f}L{other[0]:.1f} {other[1]:.1f}"
        for one, other in pairwise(placed)
        if one[1] is not None and other[1] is not None
    ]
    parts = [Markup('<path class="line {}" d="{}"/>').format(line.style, "".join(steps))]
    parts += [
        _DOT.format(line.style, at, height, told)
        for (at, height), told in zip(placed, line.told, strict=True)
        if height is not None
    ]
    return parts


def _bars(line: Line, x: Axis) -> list[Markup]:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    most = max((value for _, value in line.points if value is not None), default=0.0) or 1.0
    width = max(1.5, (right - _LEFT) / max(1, len(line.points)) * 0.6)
    parts = []
    for (at, value), told in zip(line.points, line.told, strict=True):
        height = (value or 0.0) / most * (bottom - _TOP) / 2  # so that the lines have room above them
        middle = min(right - width / 2, max(_LEFT + width / 2, x.at(at, _LEFT, right)))
        parts.append(_RECT.format(line.style, middle - width / 2, bottom - height, width, height, told))
    return parts


def _figure(label: str, parts: Sequence[Markup]) -> Markup:
    return Markup("").join([_PLOT.format(_WIDTH, _HEIGHT, label), *parts, _END])


def _legend(lines: Sequence[Line]) -> Markup:
    entries = (Markup('<li><i class="swatch {}"></i>{}</li>').format(line.style, line.name) for line in lines)
    return Markup('<ul class="legend">') + Markup("").join([*entries, Markup("</ul>")])
