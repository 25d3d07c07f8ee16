"""Runs of a replay, spread over processes, with a word on how far they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

from hotprefix.app.collector import calm_collector
from hotprefix.base.errors import HotprefixError
from hotprefix.traces.errors import BadReplay
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.outcome import Outcome
from hotprefix.traces.reading_process import WORTH_BYTES, read_apart
from hotprefix.traces.request import TraceRequest
from hotprefix.traces.settings import ReplaySettings
from hotprefix.traces.simulator import replay
from hotprefix.traces.source import TraceSource
from hotprefix.traces.survey import Survey, Surveyor

_Message = int | list[Outcome] | HotprefixError
"""Bytes read, what was found, or why nothing was."""
_SMALL_BYTES = 8 << 20
"""Traces up to here are replayed before a second process has begun, unless there are many runs."""


def replay_all(
    source: TraceSource, runs: Sequence[ReplaySettings], jobs: int, advance: Advance = nothing
) -> list[Outcome]:
    """The outcomes in the order of `runs`; `advance` is told `source.bytes` for each group of them."""
    groups = groups_of(source, len(runs), jobs)
    if len(groups) == 1:
        return replay_and_survey(source, runs, jobs, advance)[0]
    outcomes: dict[int, Outcome] = {}
    for group, found in _spread(source, runs, groups, advance):
        outcomes.update(zip(group, found, strict=True))
    return [outcomes[number] for number in range(len(runs))]


def replay_and_survey(
    source: TraceSource, runs: Sequence[ReplaySettings], jobs: int, advance: Advance = nothing
) -> tuple[list[Outcome], Survey]:
    """The same in one process, which looks at the trace on the way; a large one is parsed in another."""
    surveyor = Surveyor(source)
    apart = source.bytes >= WORTH_BYTES and jobs > 1
    batches = read_apart(source, advance) if apart else source.batches(advance)

    def requests() -> Iterator[TraceRequest]:
        for batch in batches:
            surveyor.note(batch)
            yield from batch.requests()

    with calm_collector():
        return replay(requests(), source.block_size, runs), surveyor.survey()


def groups_of(source: TraceSource, runs: int, jobs: int) -> list[range]:
    """How many processes are worth it, and what each does."""
    return grouped(runs, jobs if source.bytes * runs > _SMALL_BYTES else 1)


def grouped(runs: int, jobs: int) -> list[range]:
    """Numbers of runs in at most `jobs` groups: each group reads the trace once."""
    count = max(1, min(runs, jobs))
    return [range(number, runs, count) for number in range(count)]


def _spread(
    source: TraceSource, runs: Sequence[ReplaySettings], groups: Sequence[range], advance: Advance
) -> Iterator[tuple[range, list[Outcome]]]:
    with _workers(source, runs, groups) as results:
        while results:
            for ready in wait(list(results)):
                match _received(ready):
                    case int(count):
                        advance(count)
                    case HotprefixError() as error:
                        raise error
                    case outcomes:
                        yield results.pop(ready), outcomes


@contextmanager
def _workers(
    source: TraceSource, runs: Sequence[ReplaySettings], groups: Sequence[range]
) -> Iterator[dict[Any, range]]:
    """A process for each group; the pipes that its words come through, by group."""
    context = get_context("spawn")
    processes: list[BaseProcess] = []
    results: dict[Any, range] = {}
    try:
        for group in groups:
            receiving, sending = context.Pipe(duplex=False)
            process = context.Process(
                target=_work, args=(source, [runs[number] for number in group], sending), daemon=True
            )
            process.start()
            sending.close()
            processes.append(process)
            results[receiving] = group
        yield results
    finally:
        for begun in processes:
            begun.terminate()
            begun.join()
        for receiving in results:
            receiving.close()


def _received(connection: Any) -> _Message:
    try:
        message: _Message = connection.recv()
    except EOFError:
        return BadReplay("A replaying process has died. Is there enough memory? Try fewer --jobs.")
    return message


def _work(source: TraceSource, runs: list[ReplaySettings], sending: Connection) -> None:
    try:
        with calm_collector():
            requests = source.requests(sending.send)
            sending.send(replay(requests, source.block_size, runs))
    except HotprefixError as error:
        sending.send(error)
    finally:
        sending.close()
