"""The card in the terminal."""

from __future__ import annotations

from itertools import compress

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hotprefix.quality.card import Card, Group, Line
from hotprefix.quality.summary import Interval

_HEADINGS = (
    "bytes/token",
    "smaller",
    "mean KL",
    "median",
    "p99",
    "p99.9",
    "same top",
    "perplexity",
    "needles",
)
_NARROW = 120
_LEFT_OUT = frozenset({"median", "p99", "p99.9"})
"""Columns that a narrow terminal has no room for."""

_MARKS = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "dim")}


def show(card: Card, console: Console) -> None:
    """Print one table for each group, then targets and where it all comes from."""
    console.print(f"[bold]Quality of {escape(card.model)}[/]: {card.about}", highlight=False)
    for group in Group:
        lines = [line for line in card.lines if line.group is group]
        if lines:
            console.print(_table(group, lines, console.width))
    for verdict in card.verdicts:
        mark, colour = _MARKS[verdict.is_met]
        text = f"  {mark} {verdict.name}: {verdict.found}"
        console.print(text, style=colour, highlight=False, markup=False, soft_wrap=True)
    if card.unsolved:
        console.print(
            f"  {card.unsolved} needles were not found even uncompressed, and are left out.",
            style="dim",
            highlight=False,
        )
    for text in card.left_out:
        console.print(f"  Left out: {text}", style="yellow", highlight=False, markup=False, soft_wrap=True)
    for text in (f"$ {card.command}", f"{card.environment}; {card.date}"):
        console.print(text, style="dim", highlight=False, markup=False, soft_wrap=True)


def cells(line: Line, width: int = _NARROW) -> tuple[str, ...]:
    """A line's figures as text, in the order of the headings; intervals where there is room."""
    found = line.summary
    return (
        "–" if line.bytes_per_token is None else f"{line.bytes_per_token:,.0f}",
        "–" if line.ratio is None else f"{line.ratio:.2f} x",
        _spread(found.kl_mean) if width >= _NARROW else f"{found.kl_mean.value:.1e}",
        *(f"{value:.1e}" for value in (found.kl_median, found.kl_p99, found.kl_p999)),
        f"{found.same_top.value:.2%}",
        f"{found.ppl_ratio.value - 1:+.2%}",
        "–" if line.needles is None else f"{line.needles.found}/{line.needles.asked}",
    )


def headings() -> tuple[str, ...]:
    """Of the columns behind the name."""
    return _HEADINGS


def _spread(interval: Interval) -> str:
    return f"{interval.value:.1e} [{interval.low:.0e}, {interval.high:.0e}]"


def _table(group: Group, lines: list[Line], width: int) -> Table:
    table = Table(title=group.value, title_justify="left")
    table.add_column("")
    shown = [width >= _NARROW or heading not in _LEFT_OUT for heading in _HEADINGS]
    for heading in compress(_HEADINGS, shown):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in lines:
        table.add_row(escape(line.name), *compress(cells(line, width), shown))
    return table
