"""How near the times that `hotprefix plan` foretells are to those of a server under that very load.

Measures what prompts and answers take an idle server, foretells the times to first token of a made-up load,
and sends that load at its own pace, whether answers come or not. Run: python bench/plan.py [--seconds N]
"""

from __future__ import annotations

import asyncio
import shlex
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from statistics import median
from typing import Annotated

import httpx
import numpy as np
import orjson
import typer
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console
from scipy.optimize import nnls

from hotprefix.base.clock import Clock, SystemClock
from hotprefix.bench.client import Answer, BenchClient, connect
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Finding, Measure, Target
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.server import serving
from hotprefix.bench.table import show
from hotprefix.doctor.plan.fleet import FleetOutcome
from hotprefix.doctor.plan.load import load_of
from hotprefix.doctor.plan.search import Search
from hotprefix.doctor.plan.service import ServiceTimes
from hotprefix.doctor.plan.wish import PlanWish
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.traces.latency import SpeedModel
from hotprefix.traces.routing import Routing
from hotprefix.traces.source import TraceOptions, TraceSource

BLOCK = 32
SYSTEMS, SYSTEM_BLOCKS = 12, 16
OWN_BLOCKS = (3, 9)
WARMUP = 0.1
TARGET = 0.95
FARTHEST = 1.5
"""What is foretold against what was measured, either way; on a machine that nobody else uses."""
_LENGTHS = (3, 10, 24)
_REPEATS = 4
_ANSWER = 32
_FEWEST = 120
_WORDS = range(1_000, 20_000)
"""Ids of ordinary tokens."""


@dataclass(frozen=True, slots=True)
class Load:
    """`out` tokens of every answer; `busy` is the share of the server's time that it shall take."""

    name: str
    out: int
    busy: float


LOADS = (Load("1 token out", 1, 0.6), Load("16 tokens out", 16, 0.6))


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request: seconds after the start, the numbers of its blocks, and tokens in the last of them."""

    at: float
    blocks: tuple[int, ...]
    last: int

    @property
    def length(self) -> int:
        """Tokens of the prompt."""
        return BLOCK * (len(self.blocks) - 1) + self.last

    def tokens(self, seed: int) -> list[int]:
        """The prompt: a block is the same wherever it stands."""
        texts = (Random(f"{seed} {block}").choices(_WORDS, k=BLOCK) for block in self.blocks)
        return [token for text in texts for token in text][: self.length]


def arrivals(count: int, seed: int) -> list[Arrival]:
    """One request a second on average, at random, behind system prompts by Zipf's law."""
    random, now, found = Random(seed), 0.0, []
    weights = [1 / (place + 1) for place in range(SYSTEMS)]
    for number in range(count):
        now += random.expovariate(1.0)
        system = random.choices(range(SYSTEMS), weights)[0] * 1_000
        own = 1_000_000 + 100 * number
        blocks = (*range(system, system + SYSTEM_BLOCKS), *range(own, own + random.randint(*OWN_BLOCKS)))
        found.append(Arrival(now, blocks, random.randint(1, BLOCK)))
    return found


@dataclass(frozen=True, slots=True)
class Server:
    """What is planned for: how long it works, and how many blocks it has room for."""

    prompt: SpeedModel
    answer: float
    room: int

    def foretold(self, asked: Sequence[Arrival], out: int, qps: float, *, queue: bool = True) -> FleetOutcome:
        """What the planner's simulation says of a load; without a queue, of requests that come one by one."""
        documents = (
            {
                "timestamp": one.at * 1000,
                "input_length": one.length,
                "output_length": out,
                "hash_ids": one.blocks,
            }
            for one in asked
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.jsonl"
            path.write_bytes(b"\n".join(map(orjson.dumps, documents)))
            load = load_of(TraceSource([path], TraceOptions(block=BLOCK)), qps)
            memory = self.room * BLOCK
            wish = PlanWish(1.0, (memory,), 1.0, (Routing.AFFINITY,), most=1, warmup=WARMUP)
            search = Search(load, wish, ServiceTimes(self.prompt, self.answer if queue else 0.0, {}))
            if queue:
                return search.simulate(memory, Routing.AFFINITY, 1).outcome
            return search.unqueued(memory, Routing.AFFINITY, 1)

    def rate_for(self, busy: float, out: int) -> float:
        """Requests a second that keep it busy for this share of the time."""
        alone = self.foretold(arrivals(300, seed=0), out, 1.0, queue=False)
        return busy / (float(alone.works.mean()) + out * self.answer)


def fitted(answers: Sequence[Answer]) -> SpeedModel:
    """What a prompt, a computed and a found token take, by answers that waited for no other.

    Every time counts by how far off it is in parts of itself, or long prompts alone would decide.
    """
    rows = np.array([(1.0, one.prompt_tokens - one.cached_tokens, one.cached_tokens) for one in answers])
    weights = 1 / np.array([one.first for one in answers])
    (fixed, computed, found), _ = nnls(rows * weights[:, None], np.ones(len(rows)))
    return SpeedModel(float(fixed), float(computed), 0.0, float(found))


async def measured(client: BenchClient, room: int) -> Server:
    """Ask an idle server prompts that it does not know and prompts that it knows in part."""
    random = Random(1)
    prompts: list[Answer] = []
    each: list[float] = []
    for _ in range(_REPEATS):
        for blocks in _LENGTHS:
            known = random.choices(_WORDS, k=BLOCK * blocks)
            for tokens in (known, known + random.choices(_WORDS, k=BLOCK)):
                prompts.append(await client.run(client.completion(tokens, 1)))
        answer = await client.run(client.completion(random.choices(_WORDS, k=BLOCK), _ANSWER))
        each.append((answer.total - answer.first) / (_ANSWER - 1))
    return Server(fitted(prompts), median(each), room)


async def send(client: BenchClient, asked: Sequence[Arrival], out: int, clock: Clock) -> list[Answer]:
    """Every request at its time, however many wait."""
    asks = [client.completion(one.tokens(seed=out), out) for one in asked]
    start = clock.now()

    async def one(arrival: Arrival, number: int) -> Answer:
        await asyncio.sleep(max(0.0, start + arrival.at - clock.now()))
        return await client.run(asks[number])

    return list(await asyncio.gather(*(one(arrival, number) for number, arrival in enumerate(asked))))


def blocks_of(url: str) -> int:
    """Blocks of the server's arena, by its metrics."""
    text = httpx.get(f"{url}/metrics", trust_env=False).text
    samples = (sample for family in text_string_to_metric_families(text) for sample in family.samples)
    return int(sum(sample.value for sample in samples if sample.name == "hotprefix_kv_blocks"))


@dataclass(frozen=True, slots=True)
class Pair:
    """What was foretold of a load and what was measured of it. `hindsight` is foretold once more, with the
    times that the load's own prompts took where no other was in the way: machines change their pace."""

    name: str
    qps: float
    told: FleetOutcome
    hindsight: FleetOutcome
    answers: Sequence[Answer]

    def real(self, share: float) -> float:
        """The time that this share of the answers' first tokens did not exceed."""
        return float(np.quantile([answer.first for answer in self.answers], share))

    @property
    def found(self) -> float:
        """Prompt tokens that the server had."""
        asked = sum(answer.prompt_tokens for answer in self.answers)
        return sum(answer.cached_tokens for answer in self.answers) / asked

    def measures(self) -> Iterator[Measure]:
        """Both, side by side."""
        for share in (0.5, TARGET):
            title = f"{self.name}, p{100 * share:g}"
            yield Measure(f"{title}, measured", "s", (self.real(share),))
            yield Measure(f"{title}, foretold", "s", (self.told.at(share),))
            yield Measure(f"{title}, in hindsight", "s", (self.hindsight.at(share),))
        yield Measure(f"{self.name}, tokens found, measured", "%", (100 * self.found,))
        yield Measure(f"{self.name}, tokens found, foretold", "%", (100 * self.told.hit_rate,))

    def target(self) -> Target:
        """How far off the planned percentile is, either way."""
        real, told = self.real(TARGET), self.told.at(TARGET)
        off = max(real / told, told / real)
        return Target(f"{self.name}, p{100 * TARGET:g}: off by", "x", off, Bound.AT_MOST, FARTHEST)


async def pair(client: BenchClient, server: Server, load: Load, seconds: float, clock: Clock) -> Pair:
    """Foretell a load, then send it."""
    qps = server.rate_for(load.busy, load.out)
    drawn = arrivals(max(_FEWEST, int(seconds * qps)), seed=load.out)
    asked = [Arrival(one.at / qps, one.blocks, one.last) for one in drawn]
    real = (len(asked) - 1) / (asked[-1].at - asked[0].at)
    told = server.foretold(asked, load.out, real)
    answers = await send(client, asked, load.out, clock)
    seen = replace(server, prompt=fitted(list(alone(asked, answers))))
    hindsight = seen.foretold(asked, load.out, real)
    return Pair(load.name, real, told, hindsight, answers[int(WARMUP * len(asked)) :])


def alone(asked: Sequence[Arrival], answers: Sequence[Answer]) -> Iterator[Answer]:
    """Answers whose first token came while the server worked for nobody else."""
    for number, (arrival, answer) in enumerate(zip(asked, answers, strict=True)):
        busy = max((asked[one].at + answers[one].total for one in range(number)), default=0.0)
        later = asked[number + 1].at if number + 1 < len(asked) else float("inf")
        if busy <= arrival.at and arrival.at + answer.first <= later:
            yield answer


async def compare(url: str, seconds: float, clock: Clock) -> Finding:
    """All loads, one after the other; the server is measured again in the end: machines change their pace."""
    async with connect(url, clock) as client:
        server = await measured(client, blocks_of(url))
        pairs = [await pair(client, server, load, seconds, clock) for load in LOADS]
        after = await measured(client, server.room)
    facts: dict[str, float | int | str] = {
        "a prompt, ms": round(1000 * server.prompt.fixed, 2),
        "a computed token, ms": round(1000 * server.prompt.computed, 3),
        "a found token, µs": round(1e6 * server.prompt.found, 2),
        "a token of an answer, ms": round(1000 * server.answer, 2),
        "a computed token, after / before": round(after.prompt.computed / server.prompt.computed, 2),
        "a token of an answer, after / before": round(after.answer / server.answer, 2),
    }
    for one in pairs:
        facts |= {f"{one.name}: requests": len(one.answers), f"{one.name}: requests/s": round(one.qps, 3)}
    own = f"{BLOCK * OWN_BLOCKS[0]} to {BLOCK * OWN_BLOCKS[1]}"
    return Finding(
        name="plan",
        title="Times foretold by a plan against those of a server",
        about=f"Poisson arrivals, {seconds:g} s a load, prompts of {BLOCK * SYSTEM_BLOCKS} shared and {own} "
        f"own tokens; the first {WARMUP:.0%} are not judged. Hindsight has the times of the load itself.",
        measures=tuple(measure for one in pairs for measure in one.measures()),
        targets=tuple(one.target() for one in pairs),
        facts=facts,
    )


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    model: Annotated[str, typer.Option("--model", help="Name or path of the model.")] = DEFAULT_MODEL,
    seconds: Annotated[float, typer.Option("--seconds", help="Of each load.", min=10)] = 75.0,
    arena_mib: Annotated[int, typer.Option("--arena-mib", help="Limit of the arena.")] = 256,
) -> None:
    """Measure, show and write."""
    console, clock = Console(), SystemClock()
    options = ["--model", model, "--kv-arena", f"{arena_mib}M"]
    with serving(options, out / "server-plan.log", clock) as server:
        finding = asyncio.run(compare(server.url, seconds, clock))
    command = shlex.join(["python", "bench/plan.py", *sys.argv[1:]])
    report = Report("Plans against a server", command, read_environment(clock), [finding])
    show(report, console)
    write_report(report, out, "plan")


if __name__ == "__main__":
    typer.run(main)
