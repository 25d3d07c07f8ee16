"""How fast a model runs on this machine: prefill by chunk, decoding by threads, both by precision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

import openvino as ov

from hotprefix.base.clock import Clock
from hotprefix.base.errors import UnsupportedModel
from hotprefix.base.ids import BlockId
from hotprefix.engine.graph import kv_format, read_paged_model
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.stages import compile_network
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.format import KvFormat
from hotprefix.tune.limits import resident_bytes

_ENOUGH = 2.0
"""Seconds of one run after which it is not repeated."""

Told = Callable[[str], None]
"""Called before each measurement, with what is measured."""


@dataclass(frozen=True, slots=True)
class Programme:
    """What is measured: a prompt of `prompt` tokens in every chunk size, and `steps` tokens behind it.

    `precisions[0]` runs with all `chunks` and `threads`, the others with the first chunk and `threads[0]`.
    """

    precisions: tuple[str, ...]
    chunks: tuple[int, ...]
    threads: tuple[int, ...]
    prompt: int = 1024
    steps: int = 16
    repeats: int = 3

    @property
    def measurements(self) -> int:
        """How often progress is told."""
        return len(self.chunks) + len(self.precisions) + len(self.threads) - 1


@dataclass(frozen=True, slots=True)
class Speed:
    """Tokens/s of one answer alone."""

    prefill: float
    decode: float


@dataclass(frozen=True, slots=True)
class Speeds:
    """What was measured. `resident` is what the loaded model takes in memory, in bytes.

    `refused` are precisions that the model can't have, and why; `kv` is the format of the first precision;
    `prompt` the tokens over which prefill, and behind which decoding was measured.
    """

    by_precision: Mapping[str, Speed] = field(default_factory=dict)
    by_threads: Mapping[int, Speed] = field(default_factory=dict)
    prefill_by_chunk: Mapping[int, float] = field(default_factory=dict)
    bytes_per_token: Mapping[str, float] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    resident: int | None = None
    kv: KvFormat | None = None
    prompt: int = 0


class Subject:
    """A compiled model with room for one prompt and its answer."""

    def __init__(
        self, manifest: ModelManifest, precision: str, threads: int, room: int, clock: Clock
    ) -> None:
        core = ov.Core()
        graph = read_paged_model(core, manifest.graph, manifest.ropes)
        network = compile_network(core, graph, EngineSettings(kv_precision=precision, threads=threads))
        self.format: KvFormat = kv_format(*network)
        blocks = -(-room // self.format.block_size)
        arena = BlockArena(self.format, blocks + 1)
        self._runner = PagedRunner(network[0], arena, BlockId(blocks), *network[1:])
        self._table = [BlockId(block) for block in range(blocks)]
        self._clock = clock
        self._prompt = Random(1).choices(range(min(256, self._runner.vocab_size)), k=room)

    def prefill(self, tokens: int, chunk: int, repeats: int) -> float:
        """Tokens/s of a prompt computed in steps of `chunk`."""

        def run() -> None:
            for start in range(0, tokens, chunk):
                end = min(start + chunk, tokens)
                self._runner.run([Row(self._prompt[start:end], start, self._table, end == tokens)])

        return tokens / self._least(run, repeats)

    def decode(self, past: int, steps: int, repeats: int) -> float:
        """Tokens/s behind a prompt that was prefilled."""

        def run() -> None:
            for step in range(steps):
                place = past + step
                self._runner.run([Row([self._prompt[place]], place, self._table, True)])

        return steps / self._least(run, repeats)

    def _least(self, run: Callable[[], None], repeats: int) -> float:
        """Seconds of the fastest run: what else the machine does makes the others slower."""
        least = float("inf")
        for _ in range(repeats):
            started = self._clock.now()
            run()
            seconds = self._clock.now() - started
            least = min(least, seconds)
            if seconds > _ENOUGH:
                break
        return max(least, 1e-9)


def measure_speeds(manifest: ModelManifest, programme: Programme, clock: Clock, told: Told) -> Speeds:
    """Carry out a programme, one compiled model at a time. Raises `ModelError`."""
    return _Measuring(manifest, programme, clock, told).run()


class _Measuring:
    def __init__(self, manifest: ModelManifest, programme: Programme, clock: Clock, told: Told) -> None:
        self._manifest = manifest
        self._programme = programme
        self._clock = clock
        self._told = told
        self._bytes: dict[str, float] = {}

    def run(self) -> Speeds:
        first, *others = self._programme.precisions
        most, *fewer = self._programme.threads
        before = resident_bytes()
        subject = self._subject(first, most)
        by_chunk = self._by_chunk(subject)
        first_speed = self._speed(subject, f"{first}, {_threads(most)}", by_chunk[self._programme.chunks[0]])
        resident, kv = max(0, resident_bytes() - before), subject.format
        del subject
        by_threads = {most: first_speed}
        for threads in fewer:
            subject = self._subject(first, threads)
            by_threads[threads] = self._speed(subject, f"{first}, {_threads(threads)}")
            del subject
        by_precision, refused = {first: first_speed}, {}
        for precision in others:
            try:
                subject = self._subject(precision, most)
            except UnsupportedModel as error:
                refused[precision] = str(error)
                self._told(f"{precision}: not for this model")
                continue
            by_precision[precision] = self._speed(subject, f"{precision}, {_threads(most)}")
            del subject
        prompt = self._programme.prompt
        return Speeds(by_precision, by_threads, by_chunk, self._bytes, refused, resident, kv, prompt)

    def _subject(self, precision: str, threads: int) -> Subject:
        room = self._programme.prompt + self._programme.steps
        subject = Subject(self._manifest, precision, threads, room, self._clock)
        self._bytes[precision] = subject.format.bytes_per_token
        subject.prefill(min(64, self._programme.prompt), 32, 1)  # the first run still prepares kernels
        return subject

    def _by_chunk(self, subject: Subject) -> dict[int, float]:
        found = {}
        for chunk in self._programme.chunks:
            self._told(f"prefill in chunks of {chunk}")
            found[chunk] = subject.prefill(self._programme.prompt, chunk, self._programme.repeats)
        return found

    def _speed(self, subject: Subject, what: str, prefill: float | None = None) -> Speed:
        self._told(what)
        programme = self._programme
        if prefill is None:
            prefill = subject.prefill(programme.prompt, programme.chunks[0], programme.repeats)
        return Speed(prefill, subject.decode(programme.prompt, programme.steps, programme.repeats))


def _threads(count: int) -> str:
    return f"{count} thread{'s' if count > 1 else ''}"
