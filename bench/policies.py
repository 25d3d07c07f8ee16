"""Eviction policies on recorded traffic: what they find by capacity, `adaptive` held against LRU.

Replays every trace whole. Run: python bench/policies.py [--traces FOLDER] [--out FOLDER]
"""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from hotprefix.app.replay_work import replay_all
from hotprefix.base.clock import SystemClock
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series, Target
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.kv.policy import POLICIES
from hotprefix.traces.made_up import Traffic, made_up
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.source import TraceOptions, TraceSource
from hotprefix.traces.survey import survey

SHARES = (0.01, 0.05, 0.1, 0.2)
GAIN = 15.0
"""Percent more than LRU at 5 or 10 %: the goal."""
STARTS = {"sessions that start together": 0.0, "sessions five minutes apart": 300.0}
API = Traffic(systems=3000, system_blocks=4, own_blocks=2, talks=0.0)
"""Made-up calls of programs: many fixed prompts, few of them hot, and an end that nobody asks again."""
_API_REQUESTS = 20_000
DEFAULT = Path(__file__).resolve().parent.parent / "tests" / "traces" / "data"


def sources(folder: Path) -> dict[str, TraceSource]:
    """The traces by name; agent sessions in two ways."""
    found = {
        f"{file.name.partition('.')[0].replace('_', ' ')}": TraceSource([file])
        for file in sorted((folder / "mooncake").iterdir())
        if ".jsonl" in file.name
    }
    for sessions in ("agent_sessions", "claude_code_weka"):
        if (folder / sessions).is_dir():
            for name, gap in STARTS.items():
                found[name] = TraceSource([folder / sessions], TraceOptions(session_gap=gap))
    return found


def measure(name: str, source: TraceSource, jobs: int) -> Finding:
    """All policies at all capacities."""
    ideal = survey(source)
    cases = [(policy, share) for share in SHARES for policy in POLICIES]
    runs = [ReplaySettings(max(1, int(ideal.unique * share)), policy) for policy, share in cases]
    outcomes = replay_all(source, runs, jobs)
    rates = {case: 100 * outcome.block_rate for case, outcome in zip(cases, outcomes, strict=True)}
    lag = min(rates["adaptive", share] - rates["lru", share] for share in SHARES)
    gain = max(100 * (rates["adaptive", share] / rates["lru", share] - 1) for share in (0.05, 0.1))
    return Finding(
        name=name.replace(" ", "-"),
        title=name,
        about=f"{ideal.requests:,} requests, {ideal.unique:,} blocks of {source.block_size} tokens: "
        "blocks found, by the share of the different ones that fit.",
        measures=(
            *(
                Measure(f"{policy}, {100 * share:g} %", "%", (rate,))
                for (policy, share), rate in rates.items()
            ),
            Measure("without limits", "%", (100 * ideal.ideal_block_rate,)),
        ),
        targets=(
            Target("adaptive less LRU, the worst", "points", lag, Bound.AT_LEAST, 0.0),
            Target("adaptive more than LRU at 5 or 10 %", "%", gain, Bound.AT_LEAST, GAIN),
        ),
        charts=(_chart(name, rates, 100 * ideal.ideal_block_rate),),
    )


def _chart(name: str, rates: dict[tuple[str, float], float], ideal: float) -> Chart:
    series = tuple(
        Series(
            policy,
            tuple(rates[policy, share] for share in SHARES),
            tuple(100 * share for share in SHARES),
        )
        for policy in POLICIES
    )
    return Chart(
        ChartKind.LINES,
        f"Blocks found: {name}",
        "% of the different blocks that fit",
        "%",
        series,
        marks=(("without limits", ideal),),
    )


def main(
    traces: Annotated[Path, typer.Option("--traces", help="Folder with the traces.")] = DEFAULT,
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    jobs: Annotated[int, typer.Option("--jobs", help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure, show and write."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        calls = Path(folder) / "calls.jsonl"
        calls.write_bytes(b"".join(made_up(_API_REQUESTS, 1, API)))
        work = sources(traces) | {"made-up calls of programs": TraceSource([calls])}
        findings = [
            measure(name, source, jobs) for name, source in track(work.items(), "policies", console=console)
        ]
    command = shlex.join(["python", "bench/policies.py", *sys.argv[1:]])
    report = Report(
        "Eviction policies on recorded traffic", command, read_environment(SystemClock()), findings
    )
    show(report, console)
    write_report(report, out, "policies")


if __name__ == "__main__":
    typer.run(main)
