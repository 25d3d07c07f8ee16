"""Traces for tests of plans."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

import orjson

from hotprefix.doctor.plan.load import Load, load_of
from hotprefix.traces.source import TraceSource

BLOCK = 16

Line = tuple[float, int, int, list[int]]
"""Seconds, tokens of the prompt, of the answer, block ids."""


def source_of(path: Path, lines: Iterable[Line]) -> TraceSource:
    """A trace of Mooncake's form with blocks of 16 tokens."""
    documents = (
        {"timestamp": at * 1000, "input_length": prompt, "output_length": answer, "hash_ids": ids}
        for at, prompt, answer, ids in lines
    )
    path.write_bytes(b"\n".join(map(orjson.dumps, documents)) + b"\n")
    return TraceSource([path])


def poisson(count: int, seed: int = 1, answer: int = 0) -> list[Line]:
    """Requests without anything in common, one a second on average, of one block each."""
    random, now, lines = Random(seed), 0.0, []
    for number in range(count):
        now += random.expovariate(1.0)
        lines.append((now, BLOCK, answer, [number]))
    return lines


def apps(count: int, prompts: int = 12, blocks: int = 20, seed: int = 1) -> list[Line]:
    """One request a second on average behind one of several system prompts, with a block of its own."""
    random, now, lines = Random(seed), 0.0, []
    for number in range(count):
        now += random.expovariate(1.0)
        app = random.randrange(prompts)
        ids = [app * 1_000 + place for place in range(blocks)] + [1_000_000 + number]
        lines.append((now, len(ids) * BLOCK, 4, ids))
    return lines


def load(path: Path, lines: Iterable[Line], qps: float) -> Load:
    """A load of such a trace."""
    return load_of(source_of(path, lines), qps)
