"""Runs of a replay, spread over processes, with a word on how far they are."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

from hotprefix.traces.errors import BadReplay
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.outcome import Outcome
from hotprefix.traces.reading_process import WORTH_BYTES, read_apart
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.simulator import replay
from hotprefix.traces.source import TraceSource

_POLL = 0.2
_SMALL_BYTES = 8 << 20
"""Traces up to here are replayed before a second process has begun, unless there are many runs."""


def replay_all(
    source: TraceSource, runs: Sequence[ReplaySettings], jobs: int, advance: Advance = nothing
) -> list[Outcome]:
    """The outcomes in the order of `runs`; `advance` is told `source.bytes` for each group of them."""
    groups = grouped(len(runs), jobs if source.bytes * len(runs) > _SMALL_BYTES else 1)
    if len(groups) == 1:
        apart = source.bytes >= WORTH_BYTES and jobs > 1
        requests = read_apart(source, advance) if apart else source.requests(advance)
        with _calm_collector():
            return replay(requests, source.block_size, runs)
    outcomes: dict[int, Outcome] = {}
    for group, found in _spread(source, runs, groups, advance):
        outcomes.update(zip(group, found, strict=True))
    return [outcomes[number] for number in range(len(runs))]


def grouped(runs: int, jobs: int) -> list[range]:
    """Numbers of runs in at most `jobs` groups: each group reads the trace once."""
    count = max(1, min(runs, jobs))
    return [range(number, runs, count) for number in range(count)]


def _spread(
    source: TraceSource, runs: Sequence[ReplaySettings], groups: Sequence[range], advance: Advance
) -> Iterator[tuple[range, list[Outcome]]]:
    context = get_context("spawn")
    read = context.Array("q", len(groups))
    told = 0
    with ProcessPoolExecutor(len(groups), context, partial(_begin, read)) as pool:
        futures: dict[Future[list[Outcome]], range] = {
            pool.submit(_work, source, [runs[number] for number in group], place): group
            for place, group in enumerate(groups)
        }
        waiting = set(futures)
        try:
            while waiting:
                done, waiting = wait(waiting, _POLL, FIRST_COMPLETED)
                now = sum(read[:])
                advance(now - told)
                told = now
                for future in done:
                    yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise BadReplay(
                "A replaying process has died. Is there enough memory? Try fewer --jobs."
            ) from error
        finally:
            for future in waiting:
                future.cancel()


_told: Callable[[int, int], None]
"""Set in every process of the pool: group and bytes read."""


def _begin(read: Any) -> None:
    global _told  # noqa: PLW0603 - a process of a pool can only be handed this when it begins

    def told(place: int, count: int) -> None:
        read[place] += count

    _told = told


def _work(source: TraceSource, runs: list[ReplaySettings], place: int) -> list[Outcome]:
    with _calm_collector():
        return replay(source.requests(lambda count: _told(place, count)), source.block_size, runs)


@contextmanager
def _calm_collector() -> Iterator[None]:
    """Blocks go when nothing refers to them; looking for cycles among hundreds of thousands takes long."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)
