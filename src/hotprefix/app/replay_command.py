"""`hotprefix replay`: what a cache of any size and kind would have made of recorded traffic."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from hotprefix.app.replay_page import require_plotly, write_page
from hotprefix.app.replay_sweep import KvShape, Sweep, parts
from hotprefix.app.replay_table import show_outcomes, show_survey
from hotprefix.app.replay_work import groups_of, replay_all, replay_and_survey
from hotprefix.base.clock import SystemClock
from hotprefix.profiles.loader import load_profiles
from hotprefix.traces.latency import SpeedModel
from hotprefix.traces.lines import Advance
from hotprefix.traces.outcome import Outcome
from hotprefix.traces.provider_rules import BillingMode, ProviderRules, rules_of
from hotprefix.traces.source import TraceOptions, TraceSource
from hotprefix.traces.survey import Survey, survey

REPLAY_EPILOG = """
[bold]Examples[/]

hotprefix replay trace.jsonl --capacity 1%,5%,10% --policy lru,adaptive

hotprefix replay trace.jsonl --capacity 8G --codec raw,int8,mixed --html replay.html

hotprefix replay sessions/ --profile anthropic-2026-09 --replicas 1,4 --routing affinity,round-robin
"""

_WIDE = 200
_CACHE, _SERVERS, _VENDOR, _TRACE = "Cache", "Servers", "Vendor", "Trace"


def _option(text: str, *names: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def replay_command(
    traces: Annotated[
        list[Path],
        typer.Argument(
            help="Files or a folder: recordings (serve --trace), Mooncake's JSONL, agent sessions, "
            "Azure's CSV, exports of the ledger.",
            show_default=False,
        ),
    ],
    *,
    capacity: Annotated[
        str,
        _option("Of a replica: 5% of the trace's blocks, 2G of memory, or blocks. A list.", panel=_CACHE),
    ] = "1%,5%,10%,20%",
    policy: Annotated[str, _option("lru, slru, adaptive. A list.", panel=_CACHE)] = "adaptive",
    codec: Annotated[
        str, _option("Storage codec of --tier, or of all if there is none. A list.", panel=_CACHE)
    ] = "raw",
    tier: Annotated[
        str | None, _option("Memory behind the arena, written as --capacity.", panel=_CACHE)
    ] = None,
    block: Annotated[
        str, _option("Tokens in a block, a multiple of the trace's. A list.", panel=_CACHE)
    ] = "",
    ttl: Annotated[
        str, _option("Blocks unused for so long are dropped: 300, 5m, none. A list.", panel=_CACHE)
    ] = "none",
    kv_shape: Annotated[
        str, _option("Layers, heads of keys and values, head size.", panel=_CACHE)
    ] = "30x3x64",
    replicas: Annotated[str, _option("Number of servers. A list.", panel=_SERVERS)] = "1",
    routing: Annotated[
        str, _option("affinity, least-loaded, round-robin. A list.", panel=_SERVERS)
    ] = "affinity",
    prefill_speed: Annotated[
        float, _option("Prompt tokens that a server computes a second.", min=1e-3, panel=_SERVERS)
    ] = 500.0,
    restore_speed: Annotated[
        float, _option("Tokens a second that come back from --tier.", min=1e-3, panel=_SERVERS)
    ] = 50_000.0,
    found_speed: Annotated[
        float, _option("Tokens a second that are found in the arena.", min=1e-3, panel=_SERVERS)
    ] = 500_000.0,
    overhead: Annotated[float, _option("Milliseconds that any prompt takes.", min=0, panel=_SERVERS)] = 10.0,
    profile: Annotated[
        str | None, _option("A vendor's rules: minimum, steps, lifetime, prices.", panel=_VENDOR)
    ] = None,
    model: Annotated[str, _option("The vendor's model.", panel=_VENDOR)] = "",
    mode: Annotated[
        BillingMode | None,
        _option("Default: implicit where the vendor has that.", panel=_VENDOR),
    ] = None,
    profiles_dir: Annotated[
        Path | None, _option("Folder with profile files of your own.", panel=_VENDOR)
    ] = None,
    trace_block: Annotated[
        int | None, _option("Tokens in its blocks, if it does not say.", min=1, panel=_TRACE)
    ] = None,
    shared_tokens: Annotated[
        int, _option("Of traces without hashes: tokens all prompts begin with.", min=0, panel=_TRACE)
    ] = 0,
    session_gap: Annotated[
        float,
        _option("Seconds between the starts of files that each begin at 0.", min=0, panel=_TRACE),
    ] = 0.0,
    requests: Annotated[int | None, _option("Requests to use at most.", min=1, panel=_TRACE)] = None,
    jobs: Annotated[int | None, _option("Processes. Default: one for each core.", min=1)] = None,
    html: Annotated[Path | None, _option("Write a page with plots.", dir_okay=False)] = None,
    as_json: Annotated[bool, _option("Print JSON.", "--json")] = False,
) -> None:
    """Replay recorded traffic through the cache's own policies, without a model."""
    if html is not None:
        require_plotly()
    sweep = Sweep(
        parts(capacity),
        parts(policy),
        parts(codec),
        parts(block),
        parts(ttl),
        parts(replicas),
        parts(routing),
        tier,
        KvShape.parse(kv_shape),
        SpeedModel(overhead / 1000, 1 / prefill_speed, 1 / restore_speed, 1 / found_speed),
        None if profile is None else _rules(profile, profiles_dir, model, mode),
    )
    source = TraceSource(traces, TraceOptions(trace_block, shared_tokens, session_gap, requests))
    found, outcomes = _replayed(source, sweep, jobs or os.cpu_count() or 1)
    if html is not None:
        title = f"Replay of {', '.join(path.name for path in traces)}"
        write_page(outcomes, title, shlex.join(["hotprefix", *sys.argv[1:]]), html)
    if as_json:
        sys.stdout.write(
            orjson.dumps(_facts(source, found, outcomes), option=orjson.OPT_INDENT_2).decode() + "\n"
        )
        return
    out = Console()
    out = out if out.is_terminal else Console(width=_WIDE)
    show_survey(source, found, out)
    show_outcomes(outcomes, out)
    if html is not None:
        out.print(f"Wrote {html}.", highlight=False, markup=False, soft_wrap=True)


def _rules(profile: str, folder: Path | None, model: str, mode: BillingMode | None) -> ProviderRules:
    day = datetime.fromtimestamp(SystemClock().wall(), UTC).date()
    return rules_of(load_profiles(folder).get(profile), model, day, mode)


def _replayed(source: TraceSource, sweep: Sweep, jobs: int) -> tuple[Survey, list[Outcome]]:
    """Reads the trace once if sizes don't depend on it and one process does all, else twice."""
    found = None if sweep.needs_survey else sweep.runs(None, source.block_size)
    if found is not None and len(groups_of(source, len(found), jobs)) == 1:
        with _progress(_title(len(found)), source.bytes) as advance:
            outcomes, looked_at = replay_and_survey(source, found, jobs, advance)
        return looked_at, outcomes
    with _progress("Reading", source.bytes) as advance:
        looked_at = survey(source, advance)
    runs = sweep.runs(looked_at, source.block_size)
    with _progress(_title(len(runs)), source.bytes * len(groups_of(source, len(runs), jobs))) as advance:
        return looked_at, replay_all(source, runs, jobs, advance)


def _title(runs: int) -> str:
    return f"Replaying {runs} run{'s' if runs > 1 else ''}"


@contextmanager
def _progress(title: str, total: int) -> Iterator[Advance]:
    """A bar on standard error, if that is a terminal."""
    err = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)


def _facts(source: TraceSource, found: Survey, outcomes: list[Outcome]) -> dict[str, Any]:
    return {
        "trace": {
            "files": len(source.files),
            "format": source.names,
            "block_size": source.block_size,
            "has_identity": source.has_identity,
            "requests": found.requests,
            "seconds": found.seconds,
            "prompt_tokens": found.tokens,
            "output_tokens": found.output,
            "blocks": found.blocks,
            "unique_blocks": found.unique,
            "ideal_block_hit_rate": found.ideal_block_rate,
            "ideal_token_hit_rate": found.ideal_token_rate,
        },
        "runs": [outcome.facts() for outcome in outcomes],
    }
