"""A report as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from html import escape
from pathlib import Path
from statistics import median

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from hotprefix.bench.findings import Chart, ChartKind, Finding, Measure, Series
from hotprefix.bench.report import Report
from hotprefix.bench.style import COLOURS, GREY, number, verdict

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .2rem .9rem .2rem 0; text-align: left }
td.n { text-align: right; font-variant-numeric: tabular-nums }
code, .from { color: #555; font-size: 85% } .True { color: #007a3d } .False { color: #b00020 }
ul { list-style: none; padding: 0 } section { margin-bottom: 3rem }
"""


def write_html(report: Report, path: Path) -> None:
    """Write the whole report, plotly's code included."""
    sections = "\n".join(_section(report, finding) for finding in report.findings)
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(report.title)}</title>'
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body>"
        f"<h1>{escape(report.title)}</h1>{_origin(report)}{sections}</body></html>\n",
        encoding="utf-8",
    )


def _origin(report: Report) -> str:
    return (
        f'<p class="from"><code>$ {escape(report.command)}</code><br>{escape(report.environment.line())}</p>'
    )


def _section(report: Report, finding: Finding) -> str:
    targets = "".join(f'<li class="{t.met}">{escape(verdict(t))}</li>' for t in finding.targets)
    rows = "".join(_row(measure) for measure in finding.measures)
    facts = "".join(
        f"<tr><td>{escape(name)}</td><td>{escape(str(value))}</td></tr>"
        for name, value in finding.facts.items()
    )
    charts = "".join(
        figure(chart).to_html(full_html=False, include_plotlyjs=False) + _origin(report)
        for chart in finding.charts
    )
    return (
        f"<section><h2>{escape(finding.title)}</h2><p>{escape(finding.about)}</p><ul>{targets}</ul>"
        f"<table><tr><th></th><th>median</th><th>least</th><th>most</th><th>runs</th></tr>{rows}</table>"
        f"{charts}<table>{facts}</table></section>"
    )


def _row(measure: Measure) -> str:
    values = (measure.middle, min(measure.values), max(measure.values))
    cells = "".join(f'<td class="n">{escape(number(value, measure.unit))}</td>' for value in values)
    return f'<tr><td>{escape(measure.name)}</td>{cells}<td class="n">{len(measure.values)}</td></tr>'


def figure(chart: Chart) -> go.Figure:
    """One chart as a plotly figure."""
    drawn = go.Figure()
    for place, series in enumerate(chart.series):
        for trace in _traces(chart.kind, series, COLOURS[place % len(COLOURS)]):
            drawn.add_trace(trace)
    for name, value in chart.marks:
        line = drawn.add_vline if chart.kind is ChartKind.HISTOGRAM else drawn.add_hline
        line(value, line_dash="dash", line_color=GREY, annotation_text=name)
    drawn.update_layout(
        title=chart.title,
        template="plotly_white",
        height=420,
        showlegend=chart.kind is not ChartKind.BARS and len(chart.series) > 1,
        barmode="overlay",
        xaxis={"title": chart.x_label, "type": "log" if chart.log_x else None},
        yaxis={
            "title": chart.y_label,
            "type": "log" if chart.log_y else None,
            "rangemode": "normal" if chart.log_y else "tozero",
        },
    )
    return drawn


def _traces(kind: ChartKind, series: Series, colour: str) -> list[go.Bar | go.Scatter | go.Histogram]:
    if kind is ChartKind.HISTOGRAM:
        return [go.Histogram(x=series.y, name=series.name, marker_color=colour, opacity=0.6, nbinsx=40)]
    if kind is ChartKind.LINES:
        return [go.Scatter(x=series.x, y=series.y, name=series.name, line_color=colour, mode="lines+markers")]
    points = go.Scatter(
        x=[series.name] * len(series.y),
        y=series.y,
        mode="markers",
        marker={"color": "black", "size": 5, "opacity": 0.5},
        name=f"{series.name}, runs",
    )
    bar = go.Bar(x=[series.name], y=[median(series.y)], name=series.name, marker_color=colour, opacity=0.75)
    return [bar, points]
