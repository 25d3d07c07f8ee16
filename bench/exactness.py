"""Cached equals uncached, bit for bit: shown on random cases, with what it costs.

Each case sends a prompt to an uncached engine, alone and in one way, and to a cached one that
knows its beginning, in random chunks and in random company. The logits behind the prompt must be
equal to the last bit and 32 greedy tokens identical. Run: python bench/exactness.py [--cases N]
"""

from __future__ import annotations

import os
import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import numpy as np
import openvino as ov
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import BlockId, RequestId
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series, Target, bars
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.engine.grammar import GrammarCompiler
from hotprefix.engine.graph import compile_paged_model, kv_format, read_paged_model
from hotprefix.engine.loader import build_cache
from hotprefix.engine.observer import NullObserver
from hotprefix.engine.request import Delta, GenerationRequest, Sampling
from hotprefix.engine.row_state import RowState
from hotprefix.engine.runner import PagedRunner
from hotprefix.engine.sampler import Drawn, Sampler
from hotprefix.engine.scheduler import Scheduler
from hotprefix.engine.settings import DecodeMode, EngineSettings
from hotprefix.engine.stepper import Parts, Stepper
from hotprefix.engine.strategy.base import Bounds
from hotprefix.engine.strategy.catalogue import Strategies
from hotprefix.keys.scope import CacheScope
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import open_store
from hotprefix.pages.arena import BlockArena
from hotprefix.prompt.hf_tokenizer import HfTokenizer

TOKENS = 32
ARENA_BYTES = 256 * 1024 * 1024
LOWEST_ID, HIGHEST_ID = 100, 40_000
DECODE_TOKENS = 64
DECODE_BATCHES = (1, 16)


class Kind(StrEnum):
    """What the cache knows of a case's prompt."""

    PREFIX = "a beginning"
    REPEAT = "all of it"
    ANSWER = "a beginning with an answer that was generated"


@dataclass(frozen=True, slots=True)
class Case:
    """`prefix` is known, `suffix` new; `company` runs beside the cached request."""

    kind: Kind
    prefix: list[int]
    suffix: list[int]
    chunk: int
    mixed_chunk: int
    company: list[list[int]]
    late: int

    @property
    def prompt(self) -> list[int]:
        return self.prefix + self.suffix


@dataclass(frozen=True, slots=True)
class Outcome:
    """Logits behind the prompt, and the answer's tokens."""

    logits: NDArray[np.float32]
    tokens: list[int]
    cached_tokens: int


class Witness(Sampler):
    """A sampler that keeps the first logits of one row."""

    def __init__(self) -> None:
        self.row: RowState | None = None
        self.logits: NDArray[np.float32] | None = None

    def watch(self, row: RowState) -> None:
        """Keep the logits of `row` from now on."""
        self.row, self.logits = row, None

    def sample(self, logits: NDArray[np.float32], rows: Sequence[RowState]) -> list[Drawn]:
        for values, row in zip(logits, rows, strict=True):
            if row is self.row and self.logits is None:
                self.logits = values.copy()
        return super().sample(logits, rows)


class Arm:
    """An engine without its thread, stepped from here. Its cache outlives the cases."""

    def __init__(self, manifest: ModelManifest, compiled: ov.CompiledModel, settings: EngineSettings) -> None:
        kv = kv_format(compiled)
        arena = BlockArena(kv, settings.arena_bytes // kv.block_bytes)
        runner = PagedRunner(compiled, arena, scratch=BlockId(arena.blocks - 1))
        tokenizer = HfTokenizer(manifest.tokenizer)
        root = CacheScope(manifest.fingerprint, kv.describe()).root()
        self._settings = settings
        self._witness = Witness()
        self._serial = 0
        room = (arena.blocks - 1) * kv.block_size
        cache = build_cache(arena, settings, room)
        self._parts = Parts(
            cache=cache,
            runner=runner,
            scheduler=Scheduler(cache, settings),
            tokenizer=tokenizer,
            grammars=GrammarCompiler(tokenizer, manifest.eos_ids, runner.vocab_size),
            eos_ids=manifest.eos_ids,
            vocab_size=runner.vocab_size,
            block_bytes=kv.block_bytes,
            strategies=Strategies(settings.strategy, Bounds(room, room, cache.block_size)),
            root_for=lambda tenant: root,
            sampler=self._witness,
        )
        self._clock = SystemClock()

    def run(self, prompt: list[int], tokens: int = TOKENS) -> Outcome:
        """One request alone, in the engine's usual chunks."""
        return self.run_among(Case(Kind.PREFIX, prompt, [], 0, 0, [], 0), tokens)

    def run_among(self, case: Case, tokens: int = TOKENS) -> Outcome:
        """One request in a case's chunks and company; it comes `late` steps after the company."""
        stepper = self._stepper(case.chunk, case.mixed_chunk)
        for prompt in case.company:
            self._submit(stepper, prompt, tokens)
        for _ in range(case.late):
            stepper.step()
        answer, row, usage = self._submit(stepper, case.prompt, tokens)
        self._witness.watch(row)
        while not stepper.idle:
            stepper.step()
        assert self._witness.logits is not None
        return Outcome(self._witness.logits, answer, usage[-1])

    def seconds_per_token(self, prompts: list[list[int]]) -> float:
        """Time of a decode step for all `prompts` together, over the sequences in it."""
        stepper = self._stepper(0, 0)
        answers = [self._submit(stepper, prompt, DECODE_TOKENS)[0] for prompt in prompts]
        while not all(len(answer) for answer in answers):
            stepper.step()
        before = sum(map(len, answers))
        start = self._clock.now()
        while not stepper.idle:
            stepper.step()
        return (self._clock.now() - start) / (sum(map(len, answers)) - before)

    def _stepper(self, chunk: int, mixed_chunk: int) -> Stepper:
        settings = self._settings
        if chunk:
            settings = replace(settings, prefill_chunk=chunk, mixed_chunk=mixed_chunk)
        parts = replace(self._parts, scheduler=Scheduler(self._parts.cache, settings))
        return Stepper(parts, self._clock, NullObserver())

    def _submit(
        self, stepper: Stepper, prompt: list[int], tokens: int
    ) -> tuple[list[int], RowState, list[int]]:
        self._serial += 1
        sampling = Sampling(max_tokens=tokens, temperature=0, ignore_eos=True)
        answer: list[int] = []
        cached: list[int] = []

        def sink(delta: Delta) -> None:
            answer.extend(delta.token_ids)
            if delta.usage is not None:
                cached.append(delta.usage.cached_tokens)

        state = stepper.prepare(GenerationRequest(RequestId(str(self._serial)), prompt, sampling), sink)
        row = state.sequences[0].row
        stepper.enqueue(state)
        return answer, row, cached


class Trials:
    """Random cases, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def ids(self, count: int) -> list[int]:
        """Random token ids."""
        return self._random.choices(range(LOWEST_ID, HIGHEST_ID), k=count)

    def case(self, kind: Kind) -> Case:
        """Prefixes of 1 to 1,500 tokens, suffixes of 1 to 200, chunks of 32 to 1,024, company of 0 to 3."""
        pick = self._random.randint
        prefix = self.ids(pick(1, 1500))
        company = [self.ids(pick(2, 400)) for _ in range(pick(0, 3))]
        if company and pick(0, 1):
            company[0] = prefix + self.ids(pick(2, 100))
        return Case(
            kind=kind,
            prefix=prefix,
            suffix=[] if kind is Kind.REPEAT else self.ids(pick(1, 200)),
            chunk=pick(32, 1024),
            mixed_chunk=pick(32, 512),
            company=company,
            late=pick(0, 3),
        )


@dataclass(frozen=True, slots=True)
class Comparison:
    """Of a kind of cases: how many, how many with equal logits and equal tokens; worst difference."""

    kind: Kind
    cases: int
    equal_logits: int
    equal_tokens: int
    largest_difference: float
    reused_share: float


def compare(cached: Arm, plain: Arm, kind: Kind, trials: Trials, count: int, console: Console) -> Comparison:
    """Run `count` cases of a kind in both arms."""
    logits = tokens = reused = total = 0
    worst = 0.0
    for _ in track(range(count), f"cached against uncached: {kind}", console=console):
        case = trials.case(kind)
        if kind is Kind.ANSWER:
            case = replace(case, prefix=case.prefix + cached.run(case.prefix).tokens)
        else:
            # An exact repeat is known to the last token, a beginning from another prompt.
            cached.run(case.prefix + ([] if kind is Kind.REPEAT else trials.ids(20)), 1)
        expected, got = plain.run(case.prompt), cached.run_among(case)
        logits += bool(np.array_equal(expected.logits.view(np.uint32), got.logits.view(np.uint32)))
        tokens += expected.tokens == got.tokens
        worst = max(worst, float(np.abs(expected.logits - got.logits).max()))
        reused += got.cached_tokens
        total += len(case.prompt)
    return Comparison(kind, count, logits, tokens, worst, reused / total)


def measure(manifest: ModelManifest, precision: str, cases: int, seed: int, console: Console) -> Finding:
    """All kinds in both decode modes, and the time of a decoded token in each."""
    core = ov.Core()
    compiled = compile_paged_model(core, read_paged_model(core, manifest.graph), precision, None)
    found: dict[DecodeMode, list[Comparison]] = {}
    costs: list[Measure] = []
    for mode in (DecodeMode.EXACT, DecodeMode.FAST):
        settings = EngineSettings(arena_bytes=ARENA_BYTES, decode=mode)
        cached = Arm(manifest, compiled, settings)
        plain = Arm(manifest, compiled, replace(settings, policy=None))
        counts = {Kind.PREFIX: cases, Kind.REPEAT: max(1, cases // 10), Kind.ANSWER: max(1, cases // 4)}
        trials = Trials(seed)
        found[mode] = [compare(cached, plain, kind, trials, count, console) for kind, count in counts.items()]
        for batch in DECODE_BATCHES:
            runs = [plain.seconds_per_token([trials.ids(100) for _ in range(batch)]) for _ in range(5)]
            costs.append(Measure(f"a decoded token, {mode}, {batch} at once", "s", tuple(runs)))
    return _finding(precision, compiled, found, costs)


def _finding(
    precision: str,
    compiled: ov.CompiledModel,
    found: dict[DecodeMode, list[Comparison]],
    costs: list[Measure],
) -> Finding:
    facts: dict[str, float | int | str] = {"KV format": kv_format(compiled).element_type}
    targets, series = [], []
    for mode, comparisons in found.items():
        for one in comparisons:
            facts[f"{mode}, known {one.kind}"] = (
                f"{one.equal_logits} of {one.cases} with equal logits, {one.equal_tokens} with equal tokens; "
                f"largest difference {one.largest_difference:g}, {one.reused_share:.0%} of the tokens reused"
            )
        prefix = comparisons[0]
        for name, equal in (("first logits", prefix.equal_logits), (f"{TOKENS} tokens", prefix.equal_tokens)):
            share = 100 * equal / prefix.cases
            targets.append(Target(f"{name} equal, {mode}", "%", share, Bound.AT_LEAST, 100.0))
        series += [
            Series(f"{mode}, {one.kind.name.lower()}", (100 * one.equal_logits / one.cases,))
            for one in comparisons
        ]
    for fast, exact in zip(costs[len(DECODE_BATCHES) :], costs, strict=False):
        facts[f"exact costs more, {fast.name.rpartition(', ')[2]}"] = f"{exact.middle / fast.middle - 1:+.1%}"
    return Finding(
        name=f"exactness-{precision}",
        title=f"Cached against uncached, KV {precision}",
        about="Random prefixes (1 to 1,500 tokens), suffixes (1 to 200), chunks (32 to 1,024) and company "
        f"(0 to 3) with the cache, against the same prompts alone without it; {TOKENS} greedy tokens.",
        measures=tuple(costs),
        targets=tuple(targets),
        charts=(
            Chart(ChartKind.BARS, "Cases with logits equal to the last bit", "", "per cent", tuple(series)),
            bars("Time of a decoded token", costs, "seconds"),
        ),
        facts=facts,
    )


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    model: Annotated[str, typer.Option("--model", help="Name or path of the model.")] = DEFAULT_MODEL,
    precision: Annotated[
        list[str] | None, typer.Option("--kv-precision", help="KV element type; may be given several times.")
    ] = None,
    cases: Annotated[int, typer.Option("--cases", help="Random cases.", min=1)] = 200,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the cases.")] = 1,
) -> None:
    """Measure, show and write."""
    console = Console()
    manifest = open_store(os.environ).resolve(model)
    findings = [measure(manifest, kind, cases, seed, console) for kind in precision or ["auto", "u8"]]
    command = shlex.join(["python", "bench/exactness.py", *sys.argv[1:]])
    report = Report("Exactness of the cache", command, read_environment(SystemClock()), findings)
    show(report, console)
    write_report(report, out, "exactness")


if __name__ == "__main__":
    typer.run(main)
