"""Findings as PNG pictures, by matplotlib."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from hotprefix.bench.findings import Chart, ChartKind, Finding
from hotprefix.bench.report import Report
from hotprefix.bench.style import COLOURS, GREY, folded, verdict

_WIDTH = 9.0
_HEIGHT = 4.0
_LINE = 0.17


def write_png(report: Report, finding: Finding, path: Path) -> None:
    """Draw all charts of `finding` under each other, with targets, command and machine below."""
    caption = _caption(report, finding)
    below = _LINE * (len(caption) + 1)
    height = _HEIGHT * len(finding.charts) + below
    figure = Figure(figsize=(_WIDTH, height), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(finding.charts), 1, squeeze=False)
    for panel, chart in zip(panels[:, 0], finding.charts, strict=True):
        _draw(panel, chart)
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0, below / height, 1, 1 - below / height))
    figure.text(
        0.01, _LINE / 2 / height, "\n".join(caption), fontsize=7, color=GREY, family="monospace", va="bottom"
    )
    figure.savefig(path, metadata={"Software": None})


def _caption(report: Report, finding: Finding) -> list[str]:
    lines = [line for target in finding.targets for line in folded(verdict(target), 130)]
    lines += folded(finding.about, 130)
    return [*lines, *folded(f"$ {report.command}", 130), *folded(report.environment.line(), 130)]


def _draw(panel: Any, chart: Chart) -> None:
    panel.set_title(chart.title, loc="left", fontsize=10)
    panel.set_xlabel(chart.x_label)
    panel.set_ylabel(chart.y_label)
    panel.spines[["top", "right"]].set_visible(False)
    {ChartKind.BARS: _bars, ChartKind.LINES: _lines, ChartKind.HISTOGRAM: _histogram}[chart.kind](
        panel, chart
    )
    if chart.log_x:
        panel.set_xscale("log")
    if chart.log_y:
        panel.set_yscale("log")
    for name, value in chart.marks:
        line = panel.axvline if chart.kind is ChartKind.HISTOGRAM else panel.axhline
        line(value, color=GREY, linestyle="--", linewidth=1, label=name)
    if chart.marks or (chart.kind is not ChartKind.BARS and len(chart.series) > 1):
        panel.legend(frameon=False, fontsize=8)


def _bars(panel: Any, chart: Chart) -> None:
    for place, series in enumerate(chart.series):
        middle = median(series.y)
        panel.bar(place, middle, width=0.6, color=COLOURS[place % len(COLOURS)], alpha=0.75)
        panel.plot([place] * len(series.y), series.y, "o", color="black", markersize=2.5, alpha=0.5)
        panel.annotate(
            f"{middle:.3g}",
            (place, middle),
            ha="center",
            xytext=(18, 3),
            textcoords="offset points",
            fontsize=8,
        )
    panel.set_xticks(range(len(chart.series)), [series.name for series in chart.series], fontsize=8)


def _lines(panel: Any, chart: Chart) -> None:
    for place, series in enumerate(chart.series):
        panel.plot(
            series.x, series.y, "o-", color=COLOURS[place % len(COLOURS)], markersize=3, label=series.name
        )
    if not chart.log_y:
        panel.set_ylim(bottom=min(0, panel.get_ylim()[0]))


def _histogram(panel: Any, chart: Chart) -> None:
    for place, series in enumerate(chart.series):
        panel.hist(series.y, bins=40, color=COLOURS[place % len(COLOURS)], alpha=0.6, label=series.name)
