"""A comparison as one HTML file that needs nothing else, by plotly."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from hotprefix.base.errors import MissingExtra
from hotprefix.doctor.prompts.experiment.comparison import Comparison, Finding, Verdict
from hotprefix.doctor.prompts.experiment.words import amount, effect, probability, reading

_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_BY_VERDICT = {Verdict.BETTER: "#009e73", Verdict.WORSE: "#d55e00"}
_GREY = "#666666"
_MOST_POINTS = 500
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; margin: 1rem 0 } td, th { padding: .2rem .9rem .2rem 0; text-align: left }
td { vertical-align: top }
.caution { border-left: 4px solid #d55e00; padding: .3rem .8rem; background: #fdf3ec }
"""


def require_plotly() -> None:
    """Raises `MissingExtra` if plotly is not installed."""
    try:
        import plotly  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The page needs plotly: pip install 'hotprefix[bench]' (or leave --html out)"
        ) from None


def write_page(found: Comparison, calls: pl.DataFrame, path: Path) -> None:
    """The findings, the effects with their intervals, and the times to the first token of each arm."""
    require_plotly()
    from plotly.offline import get_plotlyjs

    title = f"{found.prompt}: {', '.join(arm.arm for arm in found.arms)}"
    figures = [_effects(found)]
    times = calls.filter(pl.col("prompt_version").is_in([arm.arm for arm in found.arms])).drop_nulls(
        "first_token"
    )
    if times.height:
        figures.append(_times(found, times))
    drawn = "".join(one.to_html(full_html=False, include_plotlyjs=False) for one in figures)
    cautions = "".join(f'<p class="caution">{escape(one)}</p>' for one in found.cautions)
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body><h1>{escape(title)}</h1>"
        f"<p>Against {escape(found.control)}; by {escape(found.unit)}; intervals of {1 - found.alpha:.0%}; "
        f"p-values corrected by Holm.</p>{cautions}{_arms(found)}{_table(found)}{drawn}</body></html>\n",
        encoding="utf-8",
    )


def _arms(found: Comparison) -> str:
    rows = "".join(
        f"<tr><td>{escape(arm.arm)}</td><td>{'–' if arm.weight is None else f'{arm.weight:.1%}'}</td>"
        f"<td>{arm.requests:,}</td><td>{arm.units:,}</td>"
        f"<td>{escape(', '.join(f'{name} {count:,}' for name, count in arm.finishes.items()))}</td></tr>"
        for arm in found.arms
    )
    return (
        f"<table><tr><th>arm</th><th>weight</th><th>requests</th><th>{escape(found.unit)}s</th>"
        f"<th>ended by</th></tr>{rows}</table>"
    )


def _table(found: Comparison) -> str:
    rows = "".join(
        f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in _cells(one))}</tr>" for one in found.findings
    )
    heads = ("arm", "metric", "arm's", "control's", "difference", "test", "p (corrected)", "verdict")
    return f"<table><tr>{''.join(f'<th>{head}</th>' for head in heads)}</tr>{rows}</table>"


def _cells(finding: Finding) -> tuple[str, ...]:
    values = ("–", "–") if finding.values is None else tuple(amount(v, finding.unit) for v in finding.values)
    test = "–" if finding.outcome is None else finding.outcome.test
    return (
        finding.arm,
        f"{finding.title} (n = {finding.units[0]:,} and {finding.units[1]:,})",
        *values,
        effect(finding),
        test,
        probability(finding.corrected),
        reading(finding),
    )


def _effects(found: Comparison) -> Any:
    """Differences relative to the control, with their intervals."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for finding in found.findings:
        relative = finding.relative
        if relative is None:
            continue
        middle, low, high = (100 * part for part in relative)
        figure.add_trace(
            go.Scatter(
                x=[middle],
                y=[f"{finding.arm}: {finding.title}, {finding.better.value} is better"],
                error_x={"type": "data", "array": [high - middle], "arrayminus": [middle - low]},
                mode="markers",
                marker={"size": 11, "color": _BY_VERDICT.get(finding.verdict, _GREY)},
                hovertext=reading(finding),
                showlegend=False,
            )
        )
    figure.add_vline(0, line_dash="dash", line_color=_GREY)
    return figure.update_layout(
        title=f"Difference from {found.control}",
        xaxis_title=f"% of {found.control}'s",
        template="plotly_white",
        height=180 + 40 * len(found.findings),
        yaxis={"autorange": "reversed", "automargin": True},
    )


def _times(found: Comparison, times: pl.DataFrame) -> Any:
    """How many requests of each arm had their first token by when."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for number, arm in enumerate(found.arms):
        own = np.sort(times.filter(pl.col("prompt_version") == arm.arm)["first_token"].to_numpy())
        if not len(own):
            continue
        shares = np.linspace(0, 1, min(len(own), _MOST_POINTS))
        figure.add_trace(
            go.Scatter(
                x=np.quantile(own, shares),
                y=100 * shares,
                name=arm.arm,
                line={"color": _COLOURS[number % len(_COLOURS)], "shape": "hv"},
            )
        )
    return figure.update_layout(
        title="Time to the first token, by request",
        xaxis={"title": "seconds (log)", "type": "log"},
        yaxis_title="% of requests",
        template="plotly_white",
        height=420,
    )
