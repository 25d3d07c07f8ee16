"""A comparison on the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hotprefix.doctor.explain.difference import visible
from hotprefix.doctor.explain.terminal import coloured, reason_text
from hotprefix.doctor.gate.summary import change_line, more_line, verdict_line
from hotprefix.doctor.gate.verdict import Gate, Worse


def show_gate(gate: Gate, out: Console) -> None:
    """Both sides, what got worse, and the verdict as the last line."""
    table = Table("", header_style="bold")
    for heading in ("requests", "prompt tokens", "cacheable", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for label, side in (("before", gate.before), ("after", gate.after)):
        row = (f"{side.sums.requests:,}", f"{side.tokens:,}", f"{side.read:,}", f"{side.share:.1%}")
        table.add_row(Text(f"{label}: {side.name}"), *row)
    out.print(table)
    for one in gate.worse:
        title = escape(f"{one.place} {more_line(one.more)}".rstrip())
        out.print(Panel(Group(*_worse(one)), title=title, title_align="left", padding=(0, 1)))
    for cause in gate.grown:
        name = f"{cause.reason} ({cause.detail})" if cause.detail else str(cause.reason)
        told = f"{name} {cause.pattern}: {cause.before:,} → {cause.after:,} tokens lost, as in {cause.place}"
        out.print(Text(told))
    for title, files in (("Only before", gate.missing), ("Only after", gate.new)):
        if files:
            out.print(Text(f"{title}, not compared: {', '.join(files)}", style="dim"))
    for note in gate.notes:
        out.print(Text(f"Note: {note}", style="dim"))
    out.print(Text(verdict_line(gate), style="bold green" if gate.is_passed else "bold red"))


def _worse(one: Worse) -> Iterator[RenderableType]:
    told = f"{one.before:,} → {one.after:,} of {one.tokens:,} tokens can be cached"
    yield Text("; ".join(filter(None, (told, change_line(one)))) + ".")
    if one.change is not None:
        yield _two(coloured(one.change.before), coloured(one.change.after))
    yield Text(reason_text(one.report), style="bold red")
    found = one.report.divergence
    if found is not None and found.before != found.after:
        yield Text(f"It differs from the request before it at {found.path}:", style="dim")
        yield _two(Text(visible(found.before), style="red"), Text(visible(found.after), style="green"))
    yield Text(one.report.advice_en)
    yield Text(one.report.advice_zh)


def _two(before: Text, after: Text) -> Table:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text("−", style="red"), before)
    grid.add_row(Text("+", style="green"), after)
    return grid
