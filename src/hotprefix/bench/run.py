"""A whole run: peer, servers, scenarios, report."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, replace
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
from hotprefix.bench.short import Round, measure_short, short_finding, short_round
from hotprefix.bench.workload import QUICK, Sizes, Workload


class Scenario(StrEnum):
    """What can be measured."""

    PREFIX = "prefix"
    CONVERSATION = "conversation"
    CONCURRENT = "concurrent"
    SHORT = "short"


_ARMS: dict[str, tuple[str, ...]] = {"cached": (), "plain": ("--no-cache",)}
"""Options that the servers differ by."""


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
    together = list(settings.scenarios)
    is_short_apart = settings.urls is None and settings.sizes.short_rounds > 1 and Scenario.SHORT in together
    if is_short_apart:
        together.remove(Scenario.SHORT)
    if together:
        yield from _together(together, settings, progress, clock, env)
    if is_short_apart:
        yield _short(settings, progress, clock)


def _together(
    scenarios: Sequence[Scenario],
    settings: BenchSettings,
    progress: Progress,
    clock: Clock,
    env: Mapping[str, str],
) -> Generator[Finding, None, None]:
    """Scenarios that the same two servers are asked in."""
    with ExitStack() as servers:
        urls = settings.urls
        if urls is None:
            tick = progress.task("servers", len(_ARMS))
            urls = _start_servers(settings, servers, tuple(_ARMS), clock, tick)
        for scenario in scenarios:
            with_peer = settings.peer and scenario in {Scenario.PREFIX, Scenario.CONCURRENT}
            gguf = gguf_of(settings.model, settings.folder, env) if with_peer else None
            yield asyncio.run(_one(settings, scenario, urls, progress, clock, gguf))


def _start_servers(
    settings: BenchSettings, servers: ExitStack, order: Sequence[str], clock: Clock, tick: Tick
) -> tuple[str, str]:
    """One of each arm, in this order; their URLs as in `_ARMS`."""
    urls = {}
    for name in order:
        options = ["--model", settings.model, *settings.server_options, *_ARMS[name]]
        log = settings.folder / f"server-{name}.log"
        urls[name] = servers.enter_context(serving(options, log, clock)).url
        tick()
    cached, plain = (urls[name] for name in _ARMS)
    return cached, plain


def _short(settings: BenchSettings, progress: Progress, clock: Clock) -> Finding:
    """Short requests to fresh pairs of servers, either started first by turns."""
    sizes, work = settings.sizes, _workload(settings, Scenario.SHORT)
    tick = progress.task("short", sizes.short_rounds * sizes.quads)
    rounds: list[Round] = []

    async def measured(urls: Sequence[str]) -> Trial:
        async with AsyncExitStack() as stack:
            trial = await _trial(settings, stack, urls, work, progress, clock)
            rounds.append(await short_round(trial, sizes.quads, tick))
            return trial

    for number in range(sizes.short_rounds):
        order = tuple(_ARMS) if number % 2 else tuple(_ARMS)[::-1]
        with ExitStack() as servers:
            trial = asyncio.run(measured(_start_servers(settings, servers, order, clock, lambda: None)))
    return short_finding(trial, rounds)


async def _one(
    settings: BenchSettings,
    scenario: Scenario,
    urls: Sequence[str],
    progress: Progress,
    clock: Clock,
    gguf: Path | None,
) -> Finding:
    async with AsyncExitStack() as stack:
        work = _workload(settings, scenario)
        trial = await _trial(settings, stack, urls, work, progress, clock)
        if gguf is not None:
            peer = await stack.enter_async_context(running_peer(gguf, settings.folder / "peer.log"))
            trial = replace(trial, peer=peer)
        return await _measurer(scenario, clock)(trial)


def _workload(settings: BenchSettings, scenario: Scenario) -> Workload:
    """Every scenario has work of its own, whatever ran before it."""
    return Workload(settings.seed * 10 + list(Scenario).index(scenario), settings.sizes.highest_id)


async def _trial(
    settings: BenchSettings,
    stack: AsyncExitStack,
    urls: Sequence[str],
    work: Workload,
    progress: Progress,
    clock: Clock,
) -> Trial:
    """A trial with a server with and one without a cache, which have answered once."""
    cached, plain = [await stack.enter_async_context(connect(url, clock)) for url in urls]
    for client in (cached, plain):
        await client.run(client.completion(work.ids(64), 4))
    return Trial(
        cached=cached,
        plain=plain,
        sizes=settings.sizes,
        work=work,
        progress=progress,
        seed=settings.seed,
        judged=not settings.quick,
    )


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
