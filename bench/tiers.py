"""What the tiers move: writing and reading the blocks of a 2,048-token prefix, by tier and codec.

64 blocks of the default model's KV format (737,280 bytes in the arena) with random contents. Beside each
tier stands the plainest way to move the same bytes. Run: python bench/tiers.py [--out FOLDER]
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from threading import Event
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import track

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import BlockKey
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Finding, Measure, bars
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.keys.scope import CacheScope
from hotprefix.pages.codecs.catalogue import build_codec
from hotprefix.pages.format import CacheInput, KvFormat
from hotprefix.tiers.base import BlockStore, Record
from hotprefix.tiers.cipher import Cipher
from hotprefix.tiers.disk import DiskStore
from hotprefix.tiers.facts import BlockFacts
from hotprefix.tiers.guard import GuardedStore
from hotprefix.tiers.ram import RamStore
from hotprefix.tiers.redis import RedisStore
from hotprefix.tiers.stack import Fetched, TierStack
from hotprefix.tiers.storage import BlockStorage

BLOCKS = 64
TOKENS = 32
LIMIT = 1 << 30
PIECE = 8
CODECS = ("raw", "int8")
FORMAT = KvFormat(
    TOKENS,
    tuple(
        CacheInput(f"{side}_cache.{layer}", "bf16", 16, (3, TOKENS, 64))
        for layer in range(30)
        for side in ("key", "value")
    ),
)
"""SmolLM2-135M: 30 layers, 3 KV heads, 64 values a head."""

Seconds = dict[str, tuple[list[float], list[float]]]
"""By subject: of writing and of reading all blocks."""


class Work:
    """The blocks, and their records in one codec."""

    def __init__(self, codec: str) -> None:
        draw = np.random.default_rng(1)
        values = draw.standard_normal(FORMAT.block_bytes // 2, np.float32)
        # The upper halves of float32 are bf16.
        self.block = (values.view(np.uint32) >> 16).astype(np.uint16).view(np.uint8)
        self.scope = CacheScope("bench", FORMAT.describe()).root()
        self.codec = build_codec(codec, FORMAT, None)
        self.storage = BlockStorage(self.scope, FORMAT.block_bytes, self.codec)
        self.keys = [BlockKey(os.urandom(32)) for _ in range(BLOCKS)]
        record = self.storage.encode(self.keys[0], 0, TOKENS, self.block)
        self.records = [
            Record(key, self.scope, record.codec, index * TOKENS, TOKENS, record.payload)
            for index, key in enumerate(self.keys)
        ]
        self.payload = record.payload


def store_seconds(store: BlockStore, work: Work) -> tuple[float, float]:
    """Write all records, then read them as the stack does: in pieces."""
    start = time.perf_counter()
    for record in work.records:
        store.put(record)
    written = time.perf_counter()
    for at in range(0, BLOCKS, PIECE):
        if None in store.get(work.keys[at : at + PIECE]):
            raise RuntimeError(f"{store.name} lost a block")
    done = time.perf_counter()
    store.delete(work.keys)
    return written - start, done - written


def file_seconds(path: Path, payload: bytes) -> tuple[float, float]:
    """The same bytes in a plain file, through the page cache."""
    with path.open("w+b", buffering=0) as file:
        start = time.perf_counter()
        for _ in range(BLOCKS):
            file.write(payload)
        written = time.perf_counter()
        for at in range(BLOCKS):
            os.pread(file.fileno(), len(payload), at * len(payload))
        done = time.perf_counter()
    path.unlink()
    return written - start, done - written


def redis_seconds(url: str, payload: bytes) -> tuple[float, float]:
    """SET and MGET of the same bytes."""
    import redis

    with redis.Redis.from_url(url) as client:
        names = [f"plain:{index}" for index in range(BLOCKS)]
        start = time.perf_counter()
        for name in names:
            client.set(name, payload)
        written = time.perf_counter()
        for at in range(0, BLOCKS, PIECE):
            client.mget(names[at : at + PIECE])
        done = time.perf_counter()
        client.delete(*names)
    return written - start, done - written


def stack_seconds(store: BlockStore, work: Work) -> tuple[float, float]:
    """Blocks in, blocks out: with encoding, decoding, threads and placement. Closes the store."""
    clock = SystemClock()
    stack = TierStack([GuardedStore(store, clock)], work.storage, clock)
    copies = [work.block.copy() for _ in work.keys]
    arrived = Event()
    found: list[Fetched] = []

    def done(run: list[Fetched]) -> None:
        found.extend(run)
        arrived.set()

    start = time.perf_counter()
    for index, (key, data) in enumerate(zip(work.keys, copies, strict=True)):
        facts = BlockFacts(hits=1, position=index * TOKENS)
        stack.store(key, facts.position, TOKENS, partial(np.asarray, data), facts)
    stack.flush(60)
    written = time.perf_counter()
    stack.fetch(work.keys, done)
    arrived.wait(60)
    end = time.perf_counter()
    stack.close(60)
    if len(found) != BLOCKS:
        raise RuntimeError(f"{store.name} lost a block")
    return written - start, end - written


def subjects(work: Work, folder: Path, url: str | None) -> dict[str, Callable[[], tuple[float, float]]]:
    """What is measured, by name; each call measures once."""
    clock = SystemClock()
    made: dict[str, Callable[[], BlockStore]] = {
        "ram": lambda: RamStore(LIMIT, work.scope, clock),
        "disk": lambda: DiskStore(folder / "tier", LIMIT, work.scope, clock),
        "disk, encrypted": lambda: DiskStore(folder / "sealed", LIMIT, work.scope, clock, Cipher(bytes(32))),
    }
    if url is not None:
        made["redis"] = lambda: RedisStore(url, LIMIT, work.scope, clock)

    def alone(make: Callable[[], BlockStore]) -> tuple[float, float]:
        store = make()
        try:
            return store_seconds(store, work)
        finally:
            store.close()

    def through_stack(make: Callable[[], BlockStore]) -> tuple[float, float]:
        return stack_seconds(make(), work)

    found: dict[str, Callable[[], tuple[float, float]]] = {}
    for name, make in made.items():
        found[name] = partial(alone, make)
        found[f"{name}, whole stack"] = partial(through_stack, make)
    found["plain file"] = lambda: file_seconds(folder / "plain", work.payload)
    if url is not None:
        found["plain redis"] = lambda: redis_seconds(url, work.payload)
    return found


def measure(codec: str, folder: Path, url: str | None, repeats: int, console: Console) -> Finding:
    """All subjects in turns, so that a slow moment of the machine meets all alike."""
    work = Work(codec)
    calls = subjects(work, folder, url)
    seconds: Seconds = {name: ([], []) for name in calls}
    for turn in track(range(repeats + 1), codec, console=console):
        for name, call in calls.items():
            shutil.rmtree(folder / "tier", ignore_errors=True)
            shutil.rmtree(folder / "sealed", ignore_errors=True)
            written, read = call()
            if turn:  # the first one warms up
                seconds[name][0].append(written)
                seconds[name][1].append(read)
    return _finding(codec, len(work.payload), seconds)


def _finding(codec: str, payload: int, seconds: Seconds) -> Finding:
    measures = []
    for way, verb in enumerate(("write", "read")):
        for name, times in seconds.items():
            rates = tuple(BLOCKS * payload / 1e9 / value for value in times[way])
            measures.append(Measure(f"{name}: {verb}", "GB/s", rates))
    facts: dict[str, float | int | str] = {"payload bytes of a block": payload, "blocks": BLOCKS}
    for name, times in seconds.items():
        if name.endswith("whole stack"):
            facts[f"{name}: 2,048 tokens read in"] = f"{1000 * median(times[1]):.1f} ms"
    return Finding(
        name=f"tiers-{codec}",
        title=f"Tiers, codec {codec}",
        about=f"{BLOCKS} blocks of {payload:,} bytes written, then read in pieces of {PIECE}; GB/s of "
        "payload. Files are in the page cache. The RAM tier alone only passes references on; the whole "
        "stack encodes and decodes too.",
        measures=tuple(measures),
        charts=(bars("Payload moved", _reads(measures), "GB/s"),),
        facts=facts,
    )


def _reads(measures: Sequence[Measure]) -> list[Measure]:
    return [measure for measure in measures if measure.name.endswith("read")]


@contextmanager
def redis_url(given: str | None, folder: Path, console: Console) -> Iterator[str | None]:
    """The one that was named, else one of our own, else none."""
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if given is not None or binary is None:
        if given is None:
            console.print("redis-server is not installed: the Redis tier is left out")
        yield given
        return
    socket = folder / "redis.sock"
    command = [binary, "--port", "0", "--unixsocket", str(socket), "--save", ""]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as server:
        try:
            assert server.stdout is not None
            for line in server.stdout:
                if "eady to accept connections" in line:
                    break
            yield f"unix://{socket}"
        finally:
            server.terminate()


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    repeats: Annotated[int, typer.Option("--repeats", help="Measurements of each.")] = 7,
    folder: Annotated[Path | None, typer.Option("--folder", help="Where the disk tier is made.")] = None,
    redis: Annotated[str | None, typer.Option("--redis", help="URL of a Redis or Valkey server.")] = None,
) -> None:
    """Measure, show and write."""
    console = Console()
    with tempfile.TemporaryDirectory(dir=folder) as name, redis_url(redis, Path(name), console) as url:
        findings = [measure(codec, Path(name), url, repeats, console) for codec in CODECS]
    command = shlex.join(["python", "bench/tiers.py", *sys.argv[1:]])
    report = Report("Tiers", command, read_environment(SystemClock()), findings)
    show(report, console)
    write_report(report, out, "tiers")


if __name__ == "__main__":
    typer.run(main)
