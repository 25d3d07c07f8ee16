"""What the cache costs requests that are too short to gain from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import NamedTuple

from hotprefix.bench.client import BenchClient
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series
from hotprefix.bench.scenario import Tick, Trial
from hotprefix.bench.stats import bootstrap_median, interval_of_mean

OVERHEAD_PERCENT = 1.0


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds of the requests to one pair of servers. Each two in a row are a quad: the same two prompts."""

    cached: tuple[float, ...]
    plain: tuple[float, ...]

    @property
    def overheads(self) -> tuple[float, ...]:
        """One value a quad, in per cent: its two requests with the cache over the same two without."""
        both = zip(_pair_sums(self.cached), _pair_sums(self.plain), strict=True)
        return tuple(100 * (cached / plain - 1) for cached, plain in both)


class _Overhead(NamedTuple):
    """Per cent: the middle value and its interval; `how` says how they were found."""

    middle: float
    low: float
    high: float
    how: str


async def measure_short(trial: Trial) -> Finding:
    """All quads with the trial's own servers."""
    quads = trial.sizes.quads * trial.sizes.short_rounds
    return short_finding(trial, [await short_round(trial, quads, trial.progress.task("short", quads))])


async def short_round(trial: Trial, quads: int, tick: Tick) -> Round:
    """Quads in the order A B B A: cached, plain, plain, cached, so that drift cancels out.

    A quad has two prompts never seen before; each goes to both servers once. Every second quad
    runs B A A B, so that neither server always comes after the other's pause.
    """
    sizes, work = trial.sizes, trial.work
    cached: list[float] = []
    plain: list[float] = []
    for number in range(quads):
        prompts = [work.ids(work.length(sizes.short_longest)) for _ in range(2)]
        order = [(trial.cached, cached), (trial.plain, plain)]
        if number % 2:
            order.reverse()
        for prompt, arms in ((prompts[0], order), (prompts[1], order[::-1])):
            for client, seconds in arms:
                seconds.append(await _seconds(client, prompt, sizes.short_out))
        tick()
    return Round(tuple(cached), tuple(plain))


def short_finding(trial: Trial, rounds: Sequence[Round]) -> Finding:
    """What rounds with pairs of servers tell together; `trial` is any of theirs."""
    sizes, found = trial.sizes, _overhead(rounds, trial.seed)
    overheads = tuple(value for one in rounds for value in one.overheads)
    return Finding(
        name="short",
        title=f"Requests of at most {sizes.short_longest} tokens",
        about=f"Completions over HTTP of 2 to {sizes.short_longest} random tokens never seen before, "
        f"{sizes.short_out} out, one at a time, both servers running, order ABBA; "
        f"overhead is {found.how}.",
        measures=(
            Measure("with cache", "s", tuple(value for one in rounds for value in one.cached)),
            Measure("without cache", "s", tuple(value for one in rounds for value in one.plain)),
            Measure("overhead of a quad", "%", overheads),
        ),
        targets=(trial.target("overhead of the cache", "%", found.middle, Bound.AT_MOST, OVERHEAD_PERCENT),),
        charts=(
            Chart(
                ChartKind.HISTOGRAM,
                f"Overhead: {found.middle:+.2f} % (95 %: {found.low:+.2f} to {found.high:+.2f})",
                "overhead of a quad, per cent",
                "quads",
                (Series("quads", overheads),),
                marks=(("overhead", found.middle), ("low", found.low), ("high", found.high)),
            ),
        ),
        facts={
            "overhead, per cent": f"{found.middle:+.2f}",
            "its 95 % interval": f"{found.low:+.2f} to {found.high:+.2f}",
            "pairs of servers": ", ".join(f"{median(one.overheads):+.2f}" for one in rounds),
        },
    )


def _overhead(rounds: Sequence[Round], seed: int) -> _Overhead:
    """Equal processes differ by more than what is looked for, and those started first are slower more often
    than not. So the overhead is the mean over pairs of servers that were started in either order by turns.
    """
    if len(rounds) == 1:
        quads = rounds[0].overheads
        return _Overhead(
            median(quads),
            *bootstrap_median(quads, seed),
            "the median over quads, its interval a 95 % bootstrap",
        )
    # A round with one server started first and one with the other belong together.
    both = [total / 2 for total in _pair_sums([median(one.overheads) for one in rounds])]
    how = (
        f"the mean over {len(rounds)} fresh pairs of servers of their medians, its interval Student's, "
        f"95 %, over {len(both)} times two"
    )
    return _Overhead(fmean(both), *interval_of_mean(both, seed), how)


async def _seconds(client: BenchClient, prompt: list[int], out: int) -> float:
    return (await client.run(client.completion(prompt, out, stream=False))).total


def _pair_sums(values: Sequence[float]) -> list[float]:
    return [first + second for first, second in zip(values[::2], values[1::2], strict=True)]
