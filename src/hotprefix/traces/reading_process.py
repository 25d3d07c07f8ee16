"""Reads a trace in a process of its own, so that parsing and replaying each have a core."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection

from hotprefix.traces.batch import Batch
from hotprefix.traces.errors import BrokenTrace
from hotprefix.traces.lines import Advance, nothing
from hotprefix.traces.source import TraceSource

WORTH_BYTES = 32 << 20
"""Smaller traces are read before another process has begun."""

_Message = Batch | int | str | None
"""Requests, bytes read, an error, or the end."""


def read_apart(source: TraceSource, advance: Advance = nothing) -> Iterator[Batch]:
    """What `source.batches` yields, parsed elsewhere. Raises `BrokenTrace`."""
    with _reader(source) as messages:
        while (message := _next(messages)) is not None:
            match message:
                case Batch():
                    yield message
                case int():
                    advance(message)
                case str():
                    raise BrokenTrace(message)


@contextmanager
def _reader(source: TraceSource) -> Iterator[Connection]:
    # The pipe's buffer is the only queue: a reader that is ahead waits.
    context = get_context("spawn")
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(target=_read, args=(source, sending), daemon=True)
    process.start()
    sending.close()
    try:
        yield receiving
    finally:
        receiving.close()
        process.join(timeout=1)
        if process.is_alive():
            process.terminate()
            process.join()
        process.close()


def _next(messages: Connection) -> _Message:
    try:
        message: _Message = messages.recv()
    except EOFError:
        return "The process that reads the trace has died. Is there enough memory?"
    return message


def _read(source: TraceSource, sending: Connection) -> None:
    try:
        for batch in source.batches(sending.send):
            sending.send(batch)
        sending.send(None)
    except BrokenTrace as error:
        sending.send(str(error))
    except BrokenPipeError:
        # Nobody wants the rest.
        return
    finally:
        sending.close()
