"""The trade-off as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hotprefix.base.errors import MissingExtra
from hotprefix.tune.planner import Plan

_CHOSEN, _OTHER = "#d55e00", "#0072b2"


def require_plotly() -> None:
    """Raises `MissingExtra` if plotly is not installed."""
    try:
        import plotly  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The plot needs plotly: pip install 'hotprefix[bench]' (or leave --plot out)"
        ) from None


def write_plot(plan: Plan, path: Path) -> None:
    """Tokens against speed for every precision; speeds by chunk and by threads where they were measured."""
    require_plotly()
    from plotly.subplots import make_subplots

    speeds = plan.facts.speeds
    charts = [_precisions(plan)]
    if speeds.prefill_by_chunk:
        charts.append(_chunks(plan))
    if len(speeds.by_threads) > 1:
        charts.append(_threads(plan))
    figure = make_subplots(rows=len(charts), cols=1, subplot_titles=[title for title, *_ in charts])
    for row, (_, x_title, y_title, traces) in enumerate(charts, 1):
        for trace in traces:
            figure.add_trace(trace, row=row, col=1)
        figure.update_xaxes(title=x_title, row=row, col=1)
        figure.update_yaxes(title=y_title, rangemode="tozero", row=row, col=1)
    machine = plan.facts.machine
    figure.update_layout(
        title=f"{plan.facts.model.name} on {machine.processor.name}, {machine.cores.usable} cores, "
        f"for {plan.wish.goal.value}: {plan.chosen.precision}",
        template="plotly_white",
        height=440 * len(charts),
        showlegend=False,
    )
    figure.write_html(path, include_plotlyjs=True, full_html=True)


_Chart = tuple[str, str, str, Sequence[Any]]
"""Title, x axis, y axis, traces."""


def _precisions(plan: Plan) -> _Chart:
    import plotly.graph_objects as go

    found = plan.candidates
    names = [one.precision for one in found]
    tokens = [one.tokens for one in found]
    colours = [_CHOSEN if one is plan.chosen else _OTHER for one in found]
    texts = [
        f"{one.bytes_per_token:,.0f} bytes a token, {one.at_once} requests at once"
        f"{f', {one.quality}' if one.quality else ''}"
        for one in found
    ]
    if any(one.seconds is None for one in found):
        bars = go.Bar(x=names, y=tokens, marker_color=colours, hovertext=texts)
        return "Precision: what fits", "--kv-precision", "tokens in the memory for KV", [bars]
    points = go.Scatter(
        x=tokens,
        y=[one.seconds for one in found],
        mode="markers+text",
        text=names,
        textposition="top center",
        marker={"color": colours, "size": 14},
        hovertext=texts,
    )
    need = plan.need
    title = (
        f"Precision: room against speed (request of {need.prompt:,} + {need.answer:,} tokens, nothing cached)"
    )
    return title, "tokens in the memory for KV", "seconds of one request", [points]


def _chunks(plan: Plan) -> _Chart:
    import plotly.graph_objects as go

    found = sorted(plan.facts.speeds.prefill_by_chunk.items())
    line = go.Scatter(x=[str(chunk) for chunk, _ in found], y=[speed for _, speed in found])
    return "Prefill by chunk size", "--prefill-chunk", "tokens/s", [line]


def _threads(plan: Plan) -> _Chart:
    import plotly.graph_objects as go

    found = sorted(plan.facts.speeds.by_threads.items())
    names = [str(threads) for threads, _ in found]
    times = [plan.need.seconds(speed.prefill, speed.decode) for _, speed in found]
    return "Threads", "--threads", "seconds of one request", [go.Scatter(x=names, y=times)]
