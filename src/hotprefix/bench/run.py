"""A whole run: peer, servers, scenarios, report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from hotprefix.base.clock import Clock
from hotprefix.bench.client import connect
from hotprefix.bench.concurrent import measure_concurrent
from hotprefix.bench.conversation import measure_conversation
from hotprefix.bench.findings import Finding
from hotprefix.bench.peer import gguf_of, running_peer
from hotprefix.bench.prefix import measure_prefix
from hotprefix.bench.scenario import Progress, Tick, Trial
from hotprefix.bench.server import serving
from hotprefix.bench.short import measure_short
from hotprefix.bench.workload import QUICK, Sizes, Workload


class Scenario(StrEnum):
    """What can be measured."""

    PREFIX = "prefix"
    CONVERSATION = "conversation"
    CONCURRENT = "concurrent"
    SHORT = "short"


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """`urls` are a server with and one without a cache, or None to start both here.

    `server_options` are handed to `hotprefix serve`.
    """

    scenarios: tuple[Scenario, ...]
    model: str
    folder: Path
    quick: bool
    peer: bool
    seed: int
    urls: tuple[str, str] | None = None
    server_options: tuple[str, ...] = ()

    @property
    def sizes(self) -> Sizes:
        return QUICK if self.quick else Sizes()


class Bars:
    """Progress bars in the terminal."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars

    def task(self, title: str, steps: int) -> Tick:
        number = self._bars.add_task(title, total=steps)
        return lambda: self._bars.advance(number)


@contextmanager
def progress_bars(console: Console) -> Iterator[Bars]:
    """Bars that are shown while the block runs."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with RichProgress(*columns, console=console) as bars:
        yield Bars(bars)


def measure(
    settings: BenchSettings, progress: Progress, clock: Clock, env: Mapping[str, str]
) -> Generator[Finding, None, None]:
    """Run the scenarios one after the other; each finding comes as soon as it is there."""
    with ExitStack() as servers:
        urls = settings.urls or _start_servers(settings, servers, progress, clock)
        for scenario in settings.scenarios:
            with_peer = settings.peer and scenario in {Scenario.PREFIX, Scenario.CONCURRENT}
            gguf = gguf_of(settings.model, settings.folder, env) if with_peer else None
            yield asyncio.run(_one(settings, scenario, urls, progress, clock, gguf))


def _start_servers(
    settings: BenchSettings, servers: ExitStack, progress: Progress, clock: Clock
) -> tuple[str, str]:
    tick = progress.task("servers", 2)
    urls = []
    for name, extra in (("cached", ()), ("plain", ("--no-cache",))):
        options = ["--model", settings.model, *settings.server_options, *extra]
        urls.append(
            servers.enter_context(serving(options, settings.folder / f"server-{name}.log", clock)).url
        )
        tick()
    return urls[0], urls[1]


async def _one(
    settings: BenchSettings,
    scenario: Scenario,
    urls: Sequence[str],
    progress: Progress,
    clock: Clock,
    gguf: Path | None,
) -> Finding:
    async with AsyncExitStack() as stack:
        cached, plain = [await stack.enter_async_context(connect(url, clock)) for url in urls]
        peer = None
        if gguf is not None:
            peer = await stack.enter_async_context(running_peer(gguf, settings.folder / "peer.log"))
        # Every scenario has work of its own, whatever ran before it.
        seed = settings.seed * 10 + list(Scenario).index(scenario)
        trial = Trial(
            cached=cached,
            plain=plain,
            sizes=settings.sizes,
            work=Workload(seed, settings.sizes.highest_id),
            progress=progress,
            seed=settings.seed,
            judged=not settings.quick,
            peer=peer,
        )
        for client in (cached, plain):
            await client.run(client.completion(trial.work.ids(64), 4))
        return await _measurer(scenario, clock)(trial)


def _measurer(scenario: Scenario, clock: Clock) -> Callable[[Trial], Awaitable[Finding]]:
    match scenario:
        case Scenario.PREFIX:
            return measure_prefix
        case Scenario.CONVERSATION:
            return measure_conversation
        case Scenario.CONCURRENT:
            return lambda trial: measure_concurrent(trial, clock)
        case Scenario.SHORT:
            return measure_short
