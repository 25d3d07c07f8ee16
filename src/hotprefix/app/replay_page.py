"""A replay as one HTML page that needs nothing else, by plotly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from hotprefix.app.replay_sweep import varied
from hotprefix.app.replay_table import show_time
from hotprefix.base.errors import MissingExtra
from hotprefix.traces.outcome import Loss, Outcome

# Okabe and Ito's palette, told apart with any colour vision; grey is for limits.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00")
_GREY = "#666666"
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: #fff }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse } td, th { padding: .15rem .9rem .15rem 0; text-align: right }
code { color: #555; font-size: 85% }
"""


def require_plotly() -> None:
    """Raises `MissingExtra` if plotly is not installed."""
    try:
        import plotly  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "The page needs plotly: pip install 'hotprefix[bench]' (or leave --html out)"
        ) from None


def write_page(outcomes: Sequence[Outcome], title: str, command: str, path: Path) -> None:
    """Curves against capacity, losses by reason, and all numbers."""
    require_plotly()
    from plotly.offline import get_plotlyjs

    figures = [_curves(outcomes, "Prompt tokens found", "%", _found, ideal=True), _losses(outcomes)]
    figures.append(_curves(outcomes, "Time to first token, 95th percentile", "seconds", _p95))
    if all(outcome.money is not None for outcome in outcomes):
        currency = outcomes[0].money.currency if outcomes[0].money is not None else ""
        figures.append(_curves(outcomes, "Cost of the trace", currency, _cost))
    drawn = "".join(figure.to_html(full_html=False, include_plotlyjs=False) for figure in figures)
    path.write_text(
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><script>{get_plotlyjs()}</script></head><body><h1>{escape(title)}</h1>"
        f"<p><code>$ {escape(command)}</code></p>{drawn}{_table(outcomes)}</body></html>\n",
        encoding="utf-8",
    )


def _found(outcome: Outcome) -> float:
    return 100 * outcome.token_rate


def _p95(outcome: Outcome) -> float:
    return outcome.first_token.p95


def _cost(outcome: Outcome) -> float:
    return float(outcome.money.actual) if outcome.money is not None else 0.0


def _series(outcome: Outcome, names: Sequence[str]) -> str:
    labels = outcome.settings.labels
    return ", ".join(labels[name] if name != "block" else f"blocks of {labels[name]}" for name in names)


def _curves(
    outcomes: Sequence[Outcome],
    title: str,
    unit: str,
    value: Callable[[Outcome], float],
    *,
    ideal: bool = False,
) -> Any:
    """One line for each combination of what differs besides the capacity."""
    import plotly.graph_objects as go

    names = [name for name in varied([outcome.settings for outcome in outcomes]) if name != "capacity"]
    lines: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        lines.setdefault(_series(outcome, names), []).append(outcome)
    capacities = list(dict.fromkeys(outcome.settings.labels["capacity"] for outcome in outcomes))
    figure = go.Figure()
    for place, (name, points) in enumerate(lines.items()):
        figure.add_trace(
            go.Scatter(
                x=[point.settings.labels["capacity"] for point in points],
                y=[value(point) for point in points],
                name=name or "all",
                mode="lines+markers",
                line_color=_COLOURS[place % len(_COLOURS)],
            )
        )
    if ideal:
        figure.add_hline(
            100 * max(outcome.ideal_rate for outcome in outcomes),
            line_dash="dash",
            line_color=_GREY,
            annotation_text="without limits",
        )
    return figure.update_layout(
        title=title,
        template="plotly_white",
        height=440,
        xaxis={"title": "capacity of a replica", "categoryorder": "array", "categoryarray": capacities},
        yaxis={"title": unit, "rangemode": "tozero"},
        showlegend=len(lines) > 1,
    )


def _losses(outcomes: Sequence[Outcome]) -> Any:
    """What became of every prompt token, a bar for each run."""
    import plotly.graph_objects as go

    names = varied([outcome.settings for outcome in outcomes])
    runs = [_series(outcome, names) for outcome in outcomes]
    figure = go.Figure()
    rows: list[tuple[str, list[int]]] = [("read", [outcome.counted_tokens for outcome in outcomes])]
    rows += [(reason.value, [outcome.lost.get(reason, 0) for outcome in outcomes]) for reason in Loss]
    colours = (_COLOURS[2], "#bbbbbb", _COLOURS[5], _COLOURS[1], _COLOURS[0], _COLOURS[3], _COLOURS[4])
    for (name, counts), colour in zip(rows, colours, strict=True):
        if any(counts):
            shares = [100 * n / (o.tokens or 1) for n, o in zip(counts, outcomes, strict=True)]
            figure.add_trace(go.Bar(y=runs, x=shares, name=name, orientation="h", marker_color=colour))
    return figure.update_layout(
        title="What became of the prompt tokens",
        template="plotly_white",
        barmode="stack",
        height=160 + 28 * len(outcomes),
        xaxis_title="%",
        yaxis={"autorange": "reversed", "automargin": True},
    )


def _table(outcomes: Sequence[Outcome]) -> str:
    names = varied([outcome.settings for outcome in outcomes])
    headings = [
        *names,
        "blocks hit",
        "tokens hit",
        "without limits",
        "evicted blocks",
        "TTFT p50",
        "p95",
        "p99",
    ]
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    rows = []
    for outcome in outcomes:
        first = outcome.first_token
        cells = [outcome.settings.labels[name] for name in names]
        cells += [f"{rate:.2%}" for rate in (outcome.block_rate, outcome.token_rate, outcome.ideal_rate)]
        cells += [f"{outcome.evicted:,}", *(show_time(time) for time in (first.p50, first.p95, first.p99))]
        rows.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
