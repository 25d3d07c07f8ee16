"""A plan as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from html import escape
from math import log10
from pathlib import Path
from typing import Any

from hotprefix.base.errors import MissingExtra
from hotprefix.doctor.plan.result import CapacityPlan
from hotprefix.doctor.plan.search import Point
from hotprefix.doctor.plan.words import seconds, size

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_DASHES = {"affinity": "solid", "round-robin": "dot", "least-loaded": "dash"}
_GREY, _CHOSEN = "#666666", "#d55e00"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .15rem .9rem .15rem 0; text-align: right }
tr.chosen { font-weight: bold } tr.missed { color: #888 } li { margin: .2rem 0 }
"""


def require_plotly() -> None:
    """Raises `MissingExtra` if plotly is not installed."""
    try:
        import plotly  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The page needs plotly: pip install 'hotprefix[bench]' (or leave --html out)"
        ) from None


def write_page(plan: CapacityPlan, verdict: str, path: Path) -> None:
    """The verdict, the curves with their target, every fleet that was simulated."""
    require_plotly()
    from plotly.offline import get_plotlyjs

    title = f"{plan.load.qps:g} requests/s within {seconds(plan.wish.target)}"
    figures = [_times(plan), _hits(plan)] if plan.points else []
    drawn = "".join(one.to_html(full_html=False, include_plotlyjs=False) for one in figures)
    notes = "".join(f"<li>{escape(note)}</li>" for note in plan.notes)
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body><h1>{escape(title)}</h1>"
        f"<p>{escape(verdict)}</p><ul>{notes}</ul>{drawn}{_table(plan)}</body></html>\n",
        encoding="utf-8",
    )


def _lines(plan: CapacityPlan) -> dict[tuple[int, str], list[Point]]:
    lines: dict[tuple[int, str], list[Point]] = {}
    for point in plan.points:
        lines.setdefault((point.memory, point.routing.value), []).append(point)
    return lines


def _times(plan: CapacityPlan) -> Any:
    """Time to first token against replicas, a line for each memory size and routing."""
    figure = _curves(plan, lambda point: point.time)
    marks = (
        ("target", "dash", plan.wish.target),
        ("nobody waits, nothing lost", "dot", plan.ideal.at(plan.wish.share)),
    )
    for text, dash, value in marks:
        figure.add_hline(value, line_dash=dash, line_color=_GREY)
        # On a logarithmic axis lines take values, but annotations take their logarithms.
        figure.add_annotation(
            x=1, xref="paper", xanchor="right", y=log10(value), yanchor="bottom", text=text, showarrow=False
        )
    name = f"p{100 * plan.wish.share:g} of the time to first token"
    return figure.update_layout(title=name, yaxis={"title": "seconds (log)", "type": "log"})


def _hits(plan: CapacityPlan) -> Any:
    """Tokens found in the cache against replicas."""
    figure = _curves(plan, lambda point: 100 * point.outcome.hit_rate)
    return figure.update_layout(title="Prompt tokens found", yaxis={"title": "%", "rangemode": "tozero"})


def _curves(plan: CapacityPlan, value: Any) -> Any:
    import plotly.graph_objects as go

    figure, memories = go.Figure(), sorted({point.memory for point in plan.points})
    for (memory, routing), points in _lines(plan).items():
        figure.add_trace(
            go.Scatter(
                x=[point.replicas for point in points],
                y=[value(point) for point in points],
                name=f"{size(memory)}, {routing}",
                mode="lines+markers",
                line={
                    "color": _COLOURS[memories.index(memory) % len(_COLOURS)],
                    "dash": _DASHES.get(routing, "longdash"),
                },
                hovertext=[f"{point.outcome.busy:.0%} busy" for point in points],
            )
        )
    if plan.chosen is not None:
        figure.add_trace(
            go.Scatter(
                x=[plan.chosen.replicas],
                y=[value(plan.chosen)],
                name="chosen",
                mode="markers",
                marker={"size": 16, "color": _CHOSEN, "symbol": "circle-open", "line": {"width": 3}},
            )
        )
    return figure.update_layout(xaxis_title="replicas", template="plotly_white", height=460)


def _table(plan: CapacityPlan) -> str:
    rows = []
    for point in plan.points:
        good = point.is_stable and point.time <= plan.wish.target
        name = "chosen" if point is plan.chosen else "" if good else "missed"
        cells = (
            size(point.memory),
            point.routing.value,
            f"{point.replicas}",
            seconds(point.time) if point.is_stable else "no end",
            f"{point.outcome.hit_rate:.1%}",
            f"{point.outcome.busy:.0%}",
            f"{plan.wish.prices.of(point.replicas, point.memory):,.2f}",
        )
        rows.append(f'<tr class="{name}">{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>')
    heads = ("memory", "routing", "replicas", f"p{100 * plan.wish.share:g}", "found", "busy", "cost an hour")
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{''.join(rows)}</table>"
