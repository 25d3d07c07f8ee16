"""The table that `hotprefix replay` prints."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hotprefix.app.replay_sweep import varied
from hotprefix.traces.outcome import Loss, Outcome
from hotprefix.traces.source import TraceSource
from hotprefix.traces.survey import Survey


def show_survey(source: TraceSource, survey: Survey, out: Console) -> None:
    """What the trace is, in two lines."""
    out.print(
        f"{survey.requests:,} requests in {survey.seconds / 60:,.0f} min, {survey.tokens:,} prompt tokens, "
        f"{survey.unique:,} different blocks of {source.block_size} tokens ({', '.join(source.names)})",
        highlight=False,
    )
    if source.has_identity:
        out.print(
            f"A cache without limits finds {survey.ideal_block_rate:.1%} of the blocks, "
            f"{survey.ideal_token_rate:.1%} of the tokens.",
            highlight=False,
        )
    else:
        out.print(
            "The trace tells lengths only, so no prompt is known to share anything: "
            "say with --shared-tokens how much all of them do.",
            style="yellow",
            highlight=False,
        )


def show_outcomes(outcomes: Sequence[Outcome], out: Console) -> None:
    """One line for each run; only what differs is named, only losses that there are have a column."""
    names = varied([outcome.settings for outcome in outcomes])
    losses = [reason for reason in Loss if any(outcome.lost.get(reason) for outcome in outcomes)]
    money = next((outcome.money for outcome in outcomes if outcome.money is not None), None)
    table = Table(header_style="bold")
    for name in names:
        table.add_column(name, no_wrap=True)
    headings = ["blocks hit", "tokens hit", "of ideal", *losses, "blocks evicted", "TTFT p50", "p95"]
    if money is not None:
        headings += [f"cost ({money.currency})", "saved"]
    for heading in headings:
        table.add_column(str(heading), justify="right")
    for outcome in outcomes:
        labels = [Text(outcome.settings.labels.get(name, "")) for name in names]
        table.add_row(*labels, *_cells(outcome, losses))
    out.print(table)
    out.print(
        "Losses are shares of all prompt tokens. Times leave the queue out and follow from the speeds given.",
        style="dim",
        highlight=False,
    )


def _cells(outcome: Outcome, losses: Sequence[Loss]) -> list[str]:
    tokens = outcome.tokens or 1
    cells = [
        f"{outcome.block_rate:.1%}",
        f"{outcome.token_rate:.1%}",
        f"{outcome.token_rate / outcome.ideal_rate:.0%}" if outcome.ideal_tokens else "–",
        *(f"{outcome.lost.get(reason, 0) / tokens:.1%}" for reason in losses),
        f"{outcome.evicted:,}",
        show_time(outcome.first_token.p50),
        show_time(outcome.first_token.p95),
    ]
    if outcome.money is not None:
        saved = 1 - outcome.money.actual / outcome.money.uncached if outcome.money.uncached else Decimal(0)
        cells += [f"{outcome.money.actual:,.2f}", f"{saved:.1%}"]
    return cells


def show_time(seconds: float) -> str:
    """`12 ms`, `3.4 s`."""
    return f"{seconds * 1000:,.0f} ms" if seconds < 1 else f"{seconds:,.1f} s"
