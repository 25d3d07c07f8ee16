"""What the cache costs requests that are too short to gain from it."""

from __future__ import annotations

from statistics import median

from hotprefix.bench.client import BenchClient
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series
from hotprefix.bench.scenario import Trial
from hotprefix.bench.stats import bootstrap_median

OVERHEAD_PERCENT = 1.0


async def measure_short(trial: Trial) -> Finding:
    """Quads in the order A B B A: cached, plain, plain, cached, so that drift cancels out.

    A quad has two prompts never seen before; each goes to both servers once. Every second quad
    runs B A A B, so that neither server always comes after the other's pause.
    """
    sizes, work = trial.sizes, trial.work
    tick = trial.progress.task("short", sizes.quads)
    cached: list[float] = []
    plain: list[float] = []
    for number in range(sizes.quads):
        prompts = [work.ids(work.length(sizes.short_longest)) for _ in range(2)]
        order = [(trial.cached, cached), (trial.plain, plain)]
        if number % 2:
            order.reverse()
        for prompt, arms in ((prompts[0], order), (prompts[1], order[::-1])):
            for client, seconds in arms:
                seconds.append(await _seconds(client, prompt, sizes.short_out))
        tick()
    return _finding(trial, cached, plain)


async def _seconds(client: BenchClient, prompt: list[int], out: int) -> float:
    return (await client.run(client.completion(prompt, out, stream=False))).total


def _finding(trial: Trial, cached: list[float], plain: list[float]) -> Finding:
    sizes = trial.sizes
    # One value a quad: its two requests with the cache over the same two without.
    overheads = [
        100 * ((cached[at] + cached[at + 1]) / (plain[at] + plain[at + 1]) - 1)
        for at in range(0, len(cached), 2)
    ]
    low, high = bootstrap_median(overheads, trial.seed)
    overhead = median(overheads)
    return Finding(
        name="short",
        title=f"Requests of at most {sizes.short_longest} tokens",
        about=f"Completions over HTTP of 2 to {sizes.short_longest} random tokens never seen before, "
        f"{sizes.short_out} out, one at a time, both servers running, order ABBA; "
        "overhead is the median over quads, its interval a 95 % bootstrap.",
        measures=(
            Measure("with cache", "s", tuple(cached)),
            Measure("without cache", "s", tuple(plain)),
            Measure("overhead of the cache", "%", tuple(overheads)),
        ),
        targets=(trial.target("overhead of the cache", "%", overhead, Bound.AT_MOST, OVERHEAD_PERCENT),),
        charts=(
            Chart(
                ChartKind.HISTOGRAM,
                f"Overhead: {overhead:+.2f} % (95 %: {low:+.2f} to {high:+.2f})",
                "overhead of a quad, per cent",
                "quads",
                (Series("quads", tuple(overheads)),),
                marks=(("median", overhead), ("low", low), ("high", high)),
            ),
        ),
        facts={"95 % interval of the overhead, per cent": f"{low:+.2f} to {high:+.2f}"},
    )
