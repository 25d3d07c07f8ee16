"""What each KV precision costs in bytes and in speed: whole networks, and networks cut in two.

Prefills the same prompt and decodes behind it with every precision in turn, so that a slow moment of the
machine meets all alike. Run: python bench/precision.py [--out FOLDER]
"""

from __future__ import annotations

import os
import random
import shlex
import sys
import time
from pathlib import Path
from typing import Annotated

import openvino as ov
import typer
from rich.console import Console
from rich.progress import track

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import BlockId
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series, Target
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.engine.graph import kv_format, read_paged_model
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.engine.settings import EngineSettings
from hotprefix.engine.stages import compile_network
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import open_store
from hotprefix.pages.arena import BlockArena

PRECISIONS = ("auto", "u8", "layered-u8", "u4", "layered-u4")
PROMPT = 1024
STEPS = 16
BATCH = 8
MOST_SLOWER = 1.1
"""A cut network against the whole one of the same deeper precision."""


class Subject:
    """A compiled network with an arena that holds `BATCH` prompts and their answers."""

    def __init__(self, manifest: ModelManifest, precision: str) -> None:
        core = ov.Core()
        model = read_paged_model(core, manifest.graph, manifest.ropes)
        network = compile_network(core, model, EngineSettings(kv_precision=precision))
        self.format = kv_format(*network)
        each = -(-(PROMPT + STEPS) // self.format.block_size)
        arena = BlockArena(self.format, each * BATCH + 1)
        self._runner = PagedRunner(network[0], arena, BlockId(each * BATCH), *network[1:])
        self._tables = [[BlockId(row * each + block) for block in range(each)] for row in range(BATCH)]

    def prefill(self, prompt: list[int]) -> float:
        """Seconds for a prompt, in one pass."""
        started = time.perf_counter()
        self._runner.run([Row(prompt, 0, self._tables[0], True)])
        return time.perf_counter() - started

    def fill(self, prompt: list[int]) -> None:
        """Write the prompt for every row, so that decoding reads its own keys and values."""
        for table in self._tables:
            self._runner.run([Row(prompt, 0, table, True)])

    def decode(self, rows: int) -> float:
        """Seconds of one step for so many answers, the mean over `STEPS`."""
        started = time.perf_counter()
        for step in range(STEPS):
            self._runner.run([Row([7 + step], PROMPT + step, table, True) for table in self._tables[:rows]])
        return (time.perf_counter() - started) / STEPS


def measure(manifest: ModelManifest, repeats: int, console: Console) -> Finding:
    """All precisions in turn; the first round only warms up."""
    subjects = {precision: Subject(manifest, precision) for precision in PRECISIONS}
    draw = random.Random(1)
    prompts = [draw.choices(range(5, 250), k=PROMPT) for _ in range(repeats + 1)]
    works = ("prefill", "decode 1", f"decode {BATCH}")
    found: dict[tuple[str, str], list[float]] = {(w, p): [] for w in works for p in PRECISIONS}
    for subject in subjects.values():
        subject.fill(prompts[0])
    for prompt in track(prompts, "precision", console=console):
        for precision, subject in subjects.items():
            times = (subject.prefill(prompt), subject.decode(1), subject.decode(BATCH))
            for work, seconds in zip(works, times, strict=True):
                found[work, precision].append(seconds)
    measures = [
        Measure(f"{work}, {precision}", "s", tuple(times[1:])) for (work, precision), times in found.items()
    ]
    sizes = [
        Measure(
            f"bytes a token, {precision} ({subject.format.precision})", "B", (subject.format.bytes_per_token,)
        )
        for precision, subject in subjects.items()
    ]
    targets = [
        Target(
            f"{work}: layered-{deep} / {deep}",
            "x",
            _ratio(found[work, f"layered-{deep}"][1:], found[work, deep][1:]),
            Bound.AT_MOST,
            MOST_SLOWER,
        )
        for work in works
        for deep in ("u8", "u4")
    ]
    ratios = [
        Measure(
            f"{work}: {precision} / auto",
            "x",
            tuple(a / b for a, b in zip(found[work, precision][1:], found[work, "auto"][1:], strict=True)),
        )
        for work in works
        for precision in PRECISIONS[1:]
    ]
    return Finding(
        name="precision",
        title="KV precision: bytes and speed",
        about=f"{manifest.name}, prompt of {PROMPT:,} tokens, decoding {STEPS} steps behind it, alone and "
        f"with {BATCH} answers. Ratios are medians of pairs of neighbouring rounds.",
        measures=(*sizes, *measures, *ratios),
        targets=tuple(targets),
        charts=(
            Chart(
                ChartKind.BARS,
                "Time against auto",
                "",
                "x",
                tuple(Series(ratio.name, ratio.values) for ratio in ratios),
                marks=(("auto", 1.0),),
            ),
        ),
    )


def _ratio(ours: list[float], theirs: list[float]) -> float:
    return Measure("", "x", tuple(a / b for a, b in zip(ours, theirs, strict=True))).middle


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    model: Annotated[str, typer.Option("--model", help="Name or path.")] = DEFAULT_MODEL,
    repeats: Annotated[int, typer.Option("--repeats", help="Rounds.")] = 7,
) -> None:
    """Measure, show and write."""
    console = Console()
    finding = measure(open_store(os.environ).resolve(model), repeats, console)
    command = shlex.join(["python", "bench/precision.py", *sys.argv[1:]])
    report = Report("KV precision", command, read_environment(SystemClock()), [finding])
    show(report, console)
    write_report(report, out, "precision")


if __name__ == "__main__":
    typer.run(main)
