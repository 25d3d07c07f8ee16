"""How long a replay of a million requests takes, and that its memory does not grow with the trace.

Runs `hotprefix replay` on made-up traffic. Run: python bench/replay_speed.py [--requests N] [--out FOLDER]
"""

from __future__ import annotations

import json
import resource
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from hotprefix.base.clock import SystemClock
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Finding, Measure, Target
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.traces.made_up import made_up

CAPACITY = 100_000
POLICIES = ("lru", "adaptive")
LIMIT_SECONDS = 60.0
LARGEST_GROWTH = 1.25
"""Of the resident memory, for ten times the requests."""


def write(path: Path, requests: int, console: Console) -> None:
    """Made-up traffic as a file."""
    with path.open("wb") as stream:
        for line in track(made_up(requests, seed=1), f"{requests:,} requests", requests, console=console):
            stream.write(line)


def replayed(path: Path, policy: str) -> tuple[float, dict[str, float]]:
    """Seconds that the command took, start included, and what it found."""
    command = ["replay", str(path), "--capacity", str(CAPACITY), "--policy", policy, "--json"]
    start = time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "hotprefix", *command], check=True, capture_output=True)
    seconds = time.perf_counter() - start
    found: dict[str, float] = json.loads(done.stdout)["runs"][0]
    return seconds, found


def resident() -> float:
    """The most memory that a child process had so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


def measure(requests: int, console: Console) -> Finding:
    """A tenth of the trace first, then all of it: the largest child is the last."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        write(path, requests // 10, console)
        for policy in POLICIES:
            replayed(path, policy)
        small = resident()
        write(path, requests, console)
        times, facts = {}, {}
        for policy in POLICIES:
            times[policy], facts[policy] = replayed(path, policy)
            console.print(f"{policy}: {times[policy]:.1f} s")
        large = resident()
    one = facts[POLICIES[0]]
    return Finding(
        name="replay",
        title=f"Replay of {requests:,} requests",
        about=f"hotprefix replay --capacity {CAPACITY}, start included; "
        f"{one['blocks']:,.0f} blocks, {one['evicted_blocks']:,.0f} of them evicted under LRU.",
        measures=(
            *(Measure(f"time, {policy}", "s", (seconds,)) for policy, seconds in times.items()),
            Measure(f"memory, {requests // 10:,} requests", "MiB", (small,)),
            Measure(f"memory, {requests:,} requests", "MiB", (large,)),
            *(
                Measure(f"tokens found, {policy}", "%", (100 * found["token_hit_rate"],))
                for policy, found in facts.items()
            ),
        ),
        targets=(
            Target("the slower policy", "s", max(times.values()), Bound.AT_MOST, LIMIT_SECONDS),
            Target("memory for ten times the requests", "x", large / small, Bound.AT_MOST, LARGEST_GROWTH),
        ),
    )


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    requests: Annotated[int, typer.Option("--requests", help="Length of the trace.", min=10)] = 1_000_000,
) -> None:
    """Measure, show and write."""
    console = Console()
    finding = measure(requests, console)
    command = shlex.join(["python", "bench/replay_speed.py", *sys.argv[1:]])
    report = Report("Speed of a replay", command, read_environment(SystemClock()), [finding])
    show(report, console)
    write_report(report, out, "replay_speed")


if __name__ == "__main__":
    typer.run(main)
