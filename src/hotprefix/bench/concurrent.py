"""Many requests at once that share their beginning, with the cache and without."""

from __future__ import annotations

import asyncio

from hotprefix.base.clock import Clock
from hotprefix.base.errors import HotprefixError
from hotprefix.bench.client import Answer, BenchClient
from hotprefix.bench.findings import Bound, Finding, Measure, bars
from hotprefix.bench.scenario import Trial
from hotprefix.bench.stats import saved_percent

SAVED_PERCENT = 68.3
WARM_OVER_PEER = 1.2


async def measure_concurrent(trial: Trial, clock: Clock) -> Finding:
    """Bursts on a beginning never seen (cold), on one known from an earlier request (warm), and uncached."""
    sizes, work = trial.sizes, trial.work
    tick = trial.progress.task("concurrent", 2 * sizes.rounds + 1)
    cold: list[float] = []
    warm: list[float] = []
    computed: list[int] = []
    for _ in range(sizes.rounds):
        seconds, answers = await _burst(trial, trial.cached, work.ids(sizes.shared), clock)
        cold.append(seconds)
        computed.append(sum(answer.prompt_tokens - answer.cached_tokens for answer in answers))
        tick()
        shared = work.ids(sizes.shared)
        await trial.cached.run(trial.cached.completion(shared + work.ids(sizes.own), 1))
        warm.append((await _burst(trial, trial.cached, shared, clock))[0])
        tick()
    plain, _ = await _burst(trial, trial.plain, work.ids(sizes.shared), clock)
    tick()
    return _finding(trial, cold, warm, plain, computed)


async def _burst(
    trial: Trial, client: BenchClient, shared: list[int], clock: Clock
) -> tuple[float, list[Answer]]:
    sizes = trial.sizes
    asks = [
        client.completion(shared + trial.work.ids(sizes.own), sizes.out, stream=False)
        for _ in range(sizes.clients)
    ]
    start = clock.now()
    answers = await asyncio.gather(*(client.run(ask) for ask in asks))
    seconds = clock.now() - start
    done = sum(answer.completion_tokens for answer in answers)
    if done != sizes.clients * sizes.out:
        raise HotprefixError(f"The server generated {done} tokens, not {sizes.clients * sizes.out}.")
    return seconds, answers


def _finding(
    trial: Trial, cold: list[float], warm: list[float], plain: float, computed: list[int]
) -> Finding:
    sizes = trial.sizes
    measures = [
        Measure("with cache, cold", "s", tuple(cold)),
        Measure("with cache, warm", "s", tuple(warm)),
        Measure("without cache", "s", (plain,)),
    ]
    if trial.peer is not None:
        measures.append(Measure("OpenVINO GenAI, warm", "s", trial.peer.concurrent))
    saved = saved_percent(plain, measures[0].middle)
    beside = None if trial.peer is None else measures[1].middle / measures[-1].middle
    prompts = sizes.clients * (sizes.shared + sizes.own)
    return Finding(
        name="concurrent",
        title=f"{sizes.clients} requests at once",
        about=f"{sizes.clients} completions over HTTP at the same moment, {sizes.shared:,} shared + "
        f"{sizes.own} own tokens in, {sizes.out} out (ignore_eos); time until the last is done.",
        measures=tuple(measures),
        targets=(
            trial.target("time saved, cold", "%", saved, Bound.AT_LEAST, SAVED_PERCENT),
            trial.target("warm ÷ OpenVINO GenAI", "", beside, Bound.AT_MOST, WARM_OVER_PEER),
        ),
        charts=(bars("Time for all requests", measures, "seconds"),),
        facts={
            "time saved, cold, per cent": round(saved, 1),
            f"prompt tokens computed of {prompts}, cold": computed[0],
            "tokens out per second, warm": round(sizes.clients * sizes.out / measures[1].middle, 1),
        },
    )
