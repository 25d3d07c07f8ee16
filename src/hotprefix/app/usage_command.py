"""`hotprefix usage`: who used what, and what the caches saved of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from hotprefix.app.moments import since_option, unix_seconds, until_option
from hotprefix.app.state import default_state_dir, ledger_file
from hotprefix.ledger.errors import LedgerError
from hotprefix.ledger.export import export
from hotprefix.ledger.facts import usage_facts
from hotprefix.ledger.query import HIT_RATE_FORMULA, Dimension, Span, Totals, totals, totals_by
from hotprefix.ledger.store import LedgerStore, open_store

USAGE_EPILOG = """
[bold]Examples[/]

hotprefix usage --by reason --since 2026-11-01

hotprefix usage --export usage.parquet --url postgresql://me@db/hotprefix
"""

_WIDE = 200
_UNBOUND = 10_000
_CELLS: dict[str, Callable[[Totals], str]] = {
    "requests": lambda total: f"{total.requests:,}",
    "hit": lambda total: f"{total.hits:,}",
    "prompt": lambda total: f"{total.prompt:,}",
    "computed": lambda total: f"{total.computed:,}",
    "read": lambda total: f"{total.read:,}",
    "written": lambda total: f"{total.written:,}",
    "free": lambda total: f"{total.free:,}",
    "output": lambda total: f"{total.output:,}",
    "hit rate": lambda total: f"{total.hit_rate:.1%}",
    "first token": lambda total: "–" if total.first_token is None else f"{total.first_token * 1000:,.0f} ms",
    "lost tokens": lambda total: f"{total.lost_tokens:,}",
    "money": lambda total: f"{total.money:,.6f} {total.currency}",
}
_NARROW = ("requests", "prompt", "read", "output", "hit rate", "money")

StateDir = Annotated[
    Path | None,
    typer.Option("--state-dir", help="The server's state folder. Default: ~/.local/state/hotprefix."),
]
Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="HOTPREFIX_LEDGER_URL",
        help="A ledger in PostgreSQL, postgresql://…, in place of the one in the state folder.",
    ),
]
By = Annotated[Dimension, typer.Option("--by", help="What the totals are grouped by.")]
Since = Annotated[datetime | None, since_option()]
Until = Annotated[datetime | None, until_option()]
Export = Annotated[
    Path | None,
    typer.Option("--export", help="Write every request to this .csv or .parquet file.", dir_okay=False),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def usage_command(
    by: By = Dimension.MODEL,
    since: Since = None,
    until: Until = None,
    export_file: Export = None,
    as_json: AsJson = False,
    state_dir: StateDir = None,
    url: Url = None,
) -> None:
    """Show what was used: requests, tokens by class, hit rate and money."""
    span = Span(unix_seconds(since), unix_seconds(until))
    out = Console()
    if not out.is_terminal:
        # A pipe has no width: nothing is squeezed for it.
        out = Console(width=_WIDE)
    with closing(_open(url, state_dir)) as store:
        if export_file is not None:
            _tell_export(export(store, export_file, span), export_file, out, as_json=as_json)
            return
        groups, sums = totals_by(store, by, span), totals(store, span)
    if as_json:
        out.print_json(data=usage_facts(by, groups, sums))
    elif groups:
        _show_table(by, groups, sums, out)
    else:
        out.print("No requests in the ledger for this time.")


def _open(url: str | None, state_dir: Path | None) -> LedgerStore:
    if url is not None:
        return open_store(url)
    file = ledger_file(state_dir or default_state_dir(os.environ))
    if not file.exists():
        raise LedgerError(
            f"There is no ledger {file}. A server writes it; name the server's folder with --state-dir, or "
            "its database with --url."
        )
    return open_store(file)


def _tell_export(count: int, file: Path, out: Console, *, as_json: bool) -> None:
    if as_json:
        out.print_json(data={"requests": count, "file": str(file)})
    else:
        out.print(f"Wrote {count:,} requests to {escape(str(file))}.", highlight=False, soft_wrap=True)


def _table(by: Dimension, groups: Sequence[Totals], sums: Sequence[Totals], headings: Sequence[str]) -> Table:
    table = Table(by.value, header_style="bold")
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    for group in groups:
        table.add_row(Text(group.key or "–"), *(_CELLS[heading](group) for heading in headings))
    table.add_section()
    for total in sums:
        table.add_row("total", *(_CELLS[heading](total) for heading in headings), style="bold")
    return table


def _show_table(by: Dimension, groups: Sequence[Totals], sums: Sequence[Totals], out: Console) -> None:
    table = _table(by, groups, sums, tuple(_CELLS))
    if out.measure(table, options=out.options.update(width=_UNBOUND)).maximum > out.width:
        # Rather fewer numbers than halves of numbers.
        table = _table(by, groups, sums, _NARROW)
        out.print("This window is narrow; --json shows every number.", style="dim")
    out.print(table)
    out.print(HIT_RATE_FORMULA, style="dim", highlight=False)
