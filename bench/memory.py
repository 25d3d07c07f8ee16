"""Memory stays bounded: thousands of prompts, each seen once, on a server with a small arena.

Starts a server, sends the prompts and samples its resident memory. It may grow by the arena's
limit and a stated constant over what it was when ready. Run: python bench/memory.py [--prompts N]
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import psutil  # type: ignore[import-untyped]
import typer
from rich.console import Console

from hotprefix.base.clock import Clock, SystemClock
from hotprefix.bench.client import BenchClient, connect
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series, Target
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.run import progress_bars
from hotprefix.bench.scenario import Tick
from hotprefix.bench.server import serving
from hotprefix.bench.table import show
from hotprefix.bench.workload import Workload
from hotprefix.models.catalogue import DEFAULT_MODEL

MIB = 1024 * 1024
CONSTANT_MIB = 192
"""Over the arena: kept logits (64 MiB), activations of the largest step, remembered texts and
answers (48 MiB), the tree's nodes, and what allocators hold back."""

_HIGHEST_ID = 40_000
_LONGEST = 192
_AT_ONCE = 16
_SAMPLE_EVERY = 50


@dataclass(slots=True)
class Memory:
    """Resident bytes of a process by the number of prompts answered."""

    process: psutil.Process
    at: list[int] = field(default_factory=list)
    resident: list[int] = field(default_factory=list)

    def sample(self, prompts: int) -> None:
        """Note what the process holds now."""
        self.at.append(prompts)
        self.resident.append(int(self.process.memory_info().rss))


async def send(url: str, prompts: int, seed: int, memory: Memory, tick: Tick, clock: Clock) -> None:
    """Ask all prompts, some at once, and sample in between."""
    work = Workload(seed, _HIGHEST_ID)
    lengths = iter([work.length(_LONGEST) for _ in range(prompts)])
    done = 0

    async def worker(client: BenchClient) -> None:
        nonlocal done
        for length in lengths:
            await client.run(client.completion(work.ids(length), 1, stream=False))
            done += 1
            tick()
            if done % _SAMPLE_EVERY == 0:
                memory.sample(done)

    async with connect(url, clock) as client:
        await asyncio.gather(*(worker(client) for _ in range(_AT_ONCE)))


def finding(memory: Memory, arena: int, prompts: int) -> Finding:
    """Growth over the start against the limit; the last half shows whether it still grows."""
    start = memory.resident[0]
    limit = (start + arena) / MIB + CONSTANT_MIB
    resident = [value / MIB for value in memory.resident]
    half = [value for at, value in zip(memory.at, resident, strict=True) if at >= prompts // 2]
    return Finding(
        name="memory",
        title=f"Memory over {prompts:,} prompts, each seen once",
        about=f"Completions of 2 to {_LONGEST} random tokens, 1 out, {_AT_ONCE} at once, arena of "
        f"{arena // MIB} MiB; resident memory of the server process.",
        measures=(Measure("resident memory", "MiB", tuple(resident)),),
        targets=(
            Target(
                f"most, against start + arena + {CONSTANT_MIB} MiB",
                "MiB",
                max(resident),
                Bound.AT_MOST,
                limit,
            ),
            Target("growth in the second half", "MiB", half[-1] - half[0], Bound.AT_MOST, CONSTANT_MIB / 10),
        ),
        charts=(
            Chart(
                ChartKind.LINES,
                "Resident memory",
                "prompts answered",
                "MiB",
                (Series("server", tuple(resident), tuple(map(float, memory.at))),),
                marks=(("start", start / MIB), ("start + arena", (start + arena) / MIB), ("limit", limit)),
            ),
        ),
        facts={"start, MiB": round(start / MIB), "end, MiB": round(resident[-1])},
    )


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    model: Annotated[str, typer.Option("--model", help="Name or path of the model.")] = DEFAULT_MODEL,
    prompts: Annotated[int, typer.Option("--prompts", help="How many.", min=_SAMPLE_EVERY)] = 10_000,
    arena_mib: Annotated[int, typer.Option("--arena-mib", help="Limit of the arena.")] = 256,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the prompts.")] = 1,
) -> None:
    """Measure, show and write."""
    console, clock = Console(), SystemClock()
    options = ["--model", model, "--kv-arena", f"{arena_mib}M"]
    with serving(options, out / "server-memory.log", clock) as server, progress_bars(console) as progress:
        memory = Memory(psutil.Process(server.pid))
        memory.sample(0)
        tick = progress.task("prompts", prompts)
        asyncio.run(send(server.url, prompts, seed, memory, tick, clock))
        memory.sample(prompts)
    command = shlex.join(["python", "bench/memory.py", *sys.argv[1:]])
    found = finding(memory, arena_mib * MIB, prompts)
    report = Report("Memory of the server", command, read_environment(clock), [found])
    show(report, console)
    write_report(report, out, "memory")


if __name__ == "__main__":
    typer.run(main)
