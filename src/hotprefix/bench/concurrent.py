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
    beside: list[float] = []
    computed: list[int] = []
    for _ in range(sizes.rounds):
        seconds, answers = await _burst(trial, trial.cached, _prompts(trial, work.ids(sizes.shared)), clock)
        cold.append(seconds)
        computed.append(sum(answer.prompt_tokens - answer.cached_tokens for answer in answers))
        tick()
        shared = work.ids(sizes.shared)
        first, prompts = shared + work.ids(sizes.own), _prompts(trial, shared)
        await trial.cached.run(trial.cached.completion(first, 1))
        warm.append((await _burst(trial, trial.cached, prompts, clock))[0])
        if trial.peer is not None:
            await trial.peer.seconds([first], 1)
            beside.append(await trial.peer.seconds(prompts, sizes.out))
        tick()
    plain, _ = await _burst(trial, trial.plain, _prompts(trial, work.ids(sizes.shared)), clock)
    tick()
    measures = [
        Measure("with cache, cold", "s", tuple(cold)),
        Measure("with cache, warm", "s", tuple(warm)),
        Measure("without cache", "s", (plain,)),
    ]
    if beside:
        measures.append(Measure("OpenVINO GenAI, warm", "s", tuple(beside)))
    return _finding(trial, measures, computed)


def _prompts(trial: Trial, shared: list[int]) -> list[list[int]]:
    return [shared + trial.work.ids(trial.sizes.own) for _ in range(trial.sizes.clients)]


async def _burst(
    trial: Trial, client: BenchClient, prompts: list[list[int]], clock: Clock
) -> tuple[float, list[Answer]]:
    sizes = trial.sizes
    asks = [client.completion(prompt, sizes.out, stream=False) for prompt in prompts]
    start = clock.now()
    answers = await asyncio.gather(*(client.run(ask) for ask in asks))
    seconds = clock.now() - start
    done = sum(answer.completion_tokens for answer in answers)
    if done != sizes.clients * sizes.out:
        raise HotprefixError(f"The server generated {done} tokens, not {sizes.clients * sizes.out}.")
    return seconds, answers


def _finding(trial: Trial, measures: list[Measure], computed: list[int]) -> Finding:
    sizes = trial.sizes
    cold, warm, plain, *peer = (measure.middle for measure in measures)
    saved = saved_percent(plain, cold)
    beside = warm / peer[0] if peer else None
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
            "tokens out per second, warm": round(sizes.clients * sizes.out / warm, 1),
        },
    )
