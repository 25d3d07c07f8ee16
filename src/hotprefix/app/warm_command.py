"""`hotprefix warm`: has a running server compute prefixes before they are needed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from hotprefix.app.warm_bar import warm_bar
from hotprefix.app.warm_file import Prefix, read_warm_files
from hotprefix.app.warming import Warmed, client_of, warmed
from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import HotprefixError

WARM_EPILOG = """
[bold]Examples[/]

Warm the requests of a JSON Lines file:
[cyan]hotprefix warm prompts.jsonl[/]

Warm a system prompt, on another server, with a key:
[cyan]hotprefix warm handbook.txt --url http://10.0.0.5:8080 --api-key sk-…[/]

A line of JSON is a chat request, or a named cache:
[cyan]{"name": "shop", "messages": [{"role": "system", "content": "…"}], "ttl": 3600}[/]
"""

Files = Annotated[
    list[Path], typer.Argument(help="JSON Lines, JSON, YAML, or a text that is a system prompt.")
]
Url = Annotated[str, typer.Option("--url", help="The server.", envvar="HOTPREFIX_URL")]
ApiKey = Annotated[
    str | None, typer.Option("--api-key", help="Whose cache is warmed.", envvar="HOTPREFIX_API_KEY")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class NotAllWarm(HotprefixError):
    """The server refused some of the prefixes."""


def warm_command(
    files: Files,
    url: Url = "http://127.0.0.1:8080",
    api_key: ApiKey = None,
    as_json: AsJson = False,
) -> None:
    """Have a server compute prefixes, so that the first request that needs them finds them."""
    prefixes = read_warm_files(files)
    done: list[Warmed] = []
    try:
        asyncio.run(_warm(prefixes, url.rstrip("/"), api_key, done))
    finally:
        # Also after Ctrl-C: what was done until then stays warm.
        _show(done, len(prefixes), as_json=as_json)
    refused = [one for one in done if one.problem]
    if refused:
        raise NotAllWarm(f"{len(refused)} of {len(prefixes)} prefixes were refused: {refused[0].problem}")


async def _warm(prefixes: Sequence[Prefix], url: str, key: str | None, done: list[Warmed]) -> None:
    bars = Console(stderr=True)
    with warm_bar(bars, "Warming", len(prefixes)) as advance:
        async with client_of(url, key) as client:
            async for one in warmed(client, prefixes, SystemClock()):
                done.append(one)
                advance(one.prefix.label)


def _show(done: Sequence[Warmed], total: int, *, as_json: bool) -> None:
    out = Console()
    if as_json:
        out.print_json(data={"prefixes": [_facts(one) for one in done], "total": total})
        return
    if not done:
        return
    table = Table("Prefix", "Computed", "Warm already", "Seconds", "Result")
    for one in done:
        result = f"[red]{escape(one.problem)}[/]" if one.problem else "warm"
        numbers = (f"{one.computed:,}", f"{one.known:,}", f"{one.seconds:.2f}")
        table.add_row(escape(one.prefix.label), *numbers, result)
    out.print(table)
    computed, known = sum(one.computed for one in done), sum(one.known for one in done)
    seconds = sum(one.seconds for one in done)
    warm = sum(1 for one in done if not one.problem)
    out.print(
        f"{warm} of {total} prefixes are warm: {computed:,} tokens computed, {known:,} warm already, "
        f"{seconds:.1f} s.",
        highlight=False,
        soft_wrap=True,
    )


def _facts(one: Warmed) -> dict[str, Any]:
    return {
        "prefix": one.prefix.label,
        "computed_tokens": one.computed,
        "reused_tokens": one.known,
        "seconds": round(one.seconds, 3),
        "problem": one.problem or None,
    }
