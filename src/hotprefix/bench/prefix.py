"""Time to first token: a prompt never seen, one whose beginning is known, and an exact repeat."""

from __future__ import annotations

from statistics import median

from hotprefix.bench.client import Answer
from hotprefix.bench.findings import Bound, Finding, Measure, Target, bars
from hotprefix.bench.scenario import Trial

MISS_OVER_HIT = 15.0
MISS_OVER_REPEAT = 60.0
HIT_OVER_PEER = 1.3


async def measure_prefix(trial: Trial) -> Finding:
    """Rounds of one miss, some hits and some repeats, so that drift of the machine meets all alike."""
    sizes, cached = trial.sizes, trial.cached
    each = max(1, sizes.hits // sizes.misses)
    tick = trial.progress.task("prefix", sizes.misses * (1 + 2 * each))
    found: dict[str, list[Answer]] = {"miss": [], "hit": [], "repeat": []}
    peer_hits: list[float] = []

    async def ask(kind: str, prompt: list[int]) -> None:
        found[kind].append(await cached.run(cached.completion(prompt, 1)))
        tick()

    # The first long prompt of a process pays for memory and kernels that later ones find ready.
    first = trial.work.ids(sizes.prefix + sizes.suffix)
    await cached.run(cached.completion(first, 1))
    await _peer_seconds(trial, first)
    for _ in range(sizes.misses):
        prefix = trial.work.ids(sizes.prefix)
        miss = prefix + trial.work.ids(sizes.suffix)
        await ask("miss", miss)
        await _peer_seconds(trial, miss)
        for _ in range(each):
            prompt = prefix + trial.work.ids(sizes.suffix)
            await ask("hit", prompt)
            peer_hits += await _peer_seconds(trial, prompt)
        for _ in range(each):
            await ask("repeat", prompt)
    return _finding(trial, found, peer_hits)


async def _peer_seconds(trial: Trial, prompt: list[int]) -> list[float]:
    return [] if trial.peer is None else [await trial.peer.seconds([prompt], 1)]


def _finding(trial: Trial, found: dict[str, list[Answer]], peer_hits: list[float]) -> Finding:
    sizes = trial.sizes
    measures = [
        Measure("miss", "s", _firsts(found["miss"])),
        Measure("hit: known prefix, new end", "s", _firsts(found["hit"])),
        Measure("exact repeat", "s", _firsts(found["repeat"])),
    ]
    if peer_hits:
        measures.append(Measure("OpenVINO GenAI, hit", "s", tuple(peer_hits)))
    facts: dict[str, float | int | str] = {
        f"tokens from the cache, {kind} (median of {sizes.prefix + sizes.suffix})": median(
            answer.cached_tokens for answer in answers
        )
        for kind, answers in found.items()
    }
    if trial.peer is not None:
        facts["OpenVINO GenAI"] = trial.peer.about
    return Finding(
        name="prefix",
        title=f"Time to first token, {sizes.prefix:,} + {sizes.suffix} tokens",
        about=f"Prompts of {sizes.prefix:,} + {sizes.suffix} random token ids over HTTP, streamed, "
        "1 token out.",
        measures=tuple(measures),
        targets=_targets(trial, measures),
        charts=(bars("Time to first token", measures, "seconds (log)", log_y=True),),
        facts=facts,
    )


def _targets(trial: Trial, measures: list[Measure]) -> tuple[Target, ...]:
    miss, hit, repeat, *peer = (measure.middle for measure in measures)
    beside = hit / peer[0] if peer else None
    return (
        trial.target("miss ÷ hit", "", miss / hit, Bound.AT_LEAST, MISS_OVER_HIT),
        trial.target("miss ÷ exact repeat", "", miss / repeat, Bound.AT_LEAST, MISS_OVER_REPEAT),
        trial.target("hit ÷ OpenVINO GenAI's hit", "", beside, Bound.AT_MOST, HIT_OVER_PEER),
    )


def _firsts(answers: list[Answer]) -> tuple[float, ...]:
    return tuple(answer.first for answer in answers)
