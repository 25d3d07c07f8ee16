"""`hotprefix bench`."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hotprefix.base.clock import SystemClock
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Finding
from hotprefix.bench.report import Report, require_plotting, write_json, write_report
from hotprefix.bench.run import BenchSettings, Scenario, measure, progress_bars
from hotprefix.bench.table import show
from hotprefix.models.catalogue import DEFAULT_MODEL

bench_app = typer.Typer(rich_markup_mode="rich")


@bench_app.callback(invoke_without_command=True)
def bench_command(  # noqa: PLR0913, PLR0917
    only: Annotated[
        list[Scenario] | None, typer.Option("--only", help="A scenario; may be given several times.")
    ] = None,
    model: Annotated[str, typer.Option("--model", help="Name or path of the model.")] = DEFAULT_MODEL,
    out: Annotated[Path, typer.Option("--out", help="Folder for results and logs.")] = Path("bench/out"),
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes, under a minute; targets stay open.")
    ] = False,
    peer: Annotated[bool, typer.Option(help="Measure OpenVINO GenAI beside it.")] = True,
    plots: Annotated[bool, typer.Option(help="Draw PNG and HTML plots.")] = True,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a target is missed.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the work that is sent.")] = 1,
    url: Annotated[str | None, typer.Option("--url", help="A running server, cache on.")] = None,
    plain_url: Annotated[str | None, typer.Option("--plain-url", help="One with --no-cache.")] = None,
    server_option: Annotated[
        list[str] | None,
        typer.Option(
            "--server-option", help="Handed to 'hotprefix serve', e.g. --server-option=--threads=2."
        ),
    ] = None,
) -> None:
    """Measure what the cache is worth: with it, without it, and beside OpenVINO GenAI.

    Starts two servers, one with and one without a cache, and asks them over HTTP. Results go to
    the terminal and, as JSON, PNG and HTML, to a folder.
    """
    if (url is None) != (plain_url is None):
        raise typer.BadParameter("Give both --url and --plain-url, or neither.")
    if plots:
        require_plotting()
    settings = BenchSettings(
        scenarios=tuple(dict.fromkeys(only or Scenario)),
        model=model,
        folder=out,
        quick=quick,
        peer=peer,
        seed=seed,
        urls=(url, plain_url) if url is not None and plain_url is not None else None,
        server_options=tuple(server_option or ()),
    )
    findings = run(settings, Console(), plots=plots)
    if check and any(target.met is False for finding in findings for target in finding.targets):
        raise typer.Exit(1)


def run(settings: BenchSettings, console: Console, *, plots: bool) -> list[Finding]:
    """Measure, show and write. What was found before an interruption or an error is kept."""
    clock = SystemClock()
    findings: list[Finding] = []
    command = shlex.join(["hotprefix", *sys.argv[1:]])
    title = "Hotprefix benchmark, quick run" if settings.quick else "Hotprefix benchmark"
    try:
        with (
            _stopped_by_sigterm(),
            progress_bars(console) as bars,
            closing(measure(settings, bars, clock, os.environ)) as found,
        ):
            findings.extend(found)
    except KeyboardInterrupt:
        console.print("[yellow]Stopped. The servers are down; what was measured is kept.[/]")
        raise typer.Exit(130) from None
    finally:
        if findings:
            report = Report(title, command, read_environment(clock), findings)
            show(report, console)
            paths = (
                write_report(report, settings.folder, "bench")
                if plots
                else [write_json(report, settings.folder, "bench")]
            )
            console.print("Written: " + ", ".join(str(path) for path in paths), highlight=False)
    return findings


@contextmanager
def _stopped_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that no server is left behind."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
