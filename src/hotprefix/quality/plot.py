"""The card as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from html import escape
from pathlib import Path

import plotly.graph_objects as go
from plotly.offline import get_plotlyjs

from hotprefix.quality.card import Card, Group, Line
from hotprefix.quality.table import cells, headings

# Okabe and Ito's palette, told apart with any colour vision.
_COLOURS = {Group.CODEC: "#0072b2", Group.PRECISION: "#e69f00", Group.STRATEGY: "#009e73"}
_GREY = "#666666"
_LEAST_KL = 1e-9
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222 }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .2rem .9rem .2rem 0; text-align: right }
td:first-child { text-align: left } code, .from { color: #555; font-size: 85% }
.True { color: #007a3d } .False { color: #b00020 } ul { list-style: none; padding: 0 }
"""


def write_html(card: Card, path: Path) -> None:
    """Write plots and tables, plotly's code included."""
    title = f"Quality of {card.model}"
    plots = "".join(
        figure.to_html(full_html=False, include_plotlyjs=False)
        for figure in (divergence_figure(card), tail_figure(card))
    )
    verdicts = "".join(
        f'<li class="{verdict.is_met}">{escape(verdict.name)}: {escape(verdict.found)}</li>'
        for verdict in card.verdicts
    )
    tables = "".join(_table(card, group) for group in Group)
    left_out = "".join(f"<p>Left out: {escape(text)}</p>" for text in card.left_out)
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body>"
        f"<h1>{escape(title)}</h1><p>{escape(card.about)}</p>{plots}<ul>{verdicts}</ul>{tables}{left_out}"
        f'<p class="from"><code>$ {escape(card.command)}</code><br>{escape(card.environment)}; '
        f"{escape(card.date)}</p></body></html>\n",
        encoding="utf-8",
    )


def divergence_figure(card: Card) -> go.Figure:
    """Mean KL against bytes a token, with the documents' intervals; down and left is better."""
    drawn = go.Figure()
    for group, colour in _COLOURS.items():
        lines = [line for line in card.lines if line.group is group and line.bytes_per_token is not None]
        if not lines:
            continue
        means = [line.summary.kl_mean for line in lines]
        drawn.add_trace(
            go.Scatter(
                x=[line.bytes_per_token for line in lines],
                y=[max(mean.value, _LEAST_KL) for mean in means],
                error_y={
                    "type": "data",
                    "symmetric": False,
                    "array": [mean.high - mean.value for mean in means],
                    "arrayminus": [mean.value - mean.low for mean in means],
                },
                text=[line.name for line in lines],
                mode="markers+text",
                textposition="top center",
                marker={"size": 10, "color": colour},
                name=group.value,
            )
        )
    for line in card.lines:
        if line.group is Group.FLOOR and line.summary.kl_mean.value > _LEAST_KL:
            drawn.add_hline(
                line.summary.kl_mean.value, line_dash="dash", line_color=_GREY, annotation_text=line.name
            )
    drawn.update_layout(
        title="Divergence against size",
        template="plotly_white",
        height=520,
        xaxis={"title": "bytes a token", "rangemode": "tozero"},
        yaxis={"title": "mean KL divergence, nats", "type": "log", "exponentformat": "power"},
    )
    return drawn


def tail_figure(card: Card) -> go.Figure:
    """From the median to the worst token, for each storage codec."""
    drawn = go.Figure()
    for line in card.lines:
        if line.group is Group.CODEC:
            found = line.summary
            values = (found.kl_median, found.kl_mean.value, found.kl_p99, found.kl_p999, found.kl_max)
            drawn.add_trace(
                go.Scatter(
                    x=["median", "mean", "p99", "p99.9", "worst"],
                    y=[max(value, _LEAST_KL) for value in values],
                    mode="lines+markers",
                    name=line.name,
                )
            )
    drawn.update_layout(
        title="Tails of the divergence",
        template="plotly_white",
        height=420,
        yaxis={"title": "KL divergence of a token, nats", "type": "log", "exponentformat": "power"},
    )
    return drawn


def _table(card: Card, group: Group) -> str:
    lines = [line for line in card.lines if line.group is group]
    if not lines:
        return ""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in ("", *headings()))
    return f"<h2>{escape(group.value)}</h2><table><tr>{head}</tr>{''.join(map(_row, lines))}</table>"


def _row(line: Line) -> str:
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in (line.name, *cells(line))) + "</tr>"
