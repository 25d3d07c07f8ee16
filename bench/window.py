"""A window against the whole cache and against computing every window anew: perplexity, memory, time.

A text that ships with Python is read ten windows long, every token scored. `window` and `mixed` cut
their caches as the server does. The reference computes the latest tokens again from nothing whenever the
window has moved by as many tokens as `window` drops at once. Then tokens are decoded one by one with a full
window, and the time in cuts is held against the time of all steps.
Run: python bench/window.py [--window N] [--windows N]
"""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from pydoc_data.topics import topics
from typing import Annotated

import numpy as np
import openvino as ov
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series, Target
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.cache.base import Room
from hotprefix.cache.holding import Holding
from hotprefix.cache.rules import ReuseRules
from hotprefix.cache.uncached import UncachedCache
from hotprefix.engine.graph import Told, compile_paged_model, kv_format, read_paged_model
from hotprefix.engine.rotary_of import rotary_of
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.engine.strategy.base import Cutter
from hotprefix.engine.strategy.choice import StrategyChoice, StrategyName
from hotprefix.engine.strategy.compactor import Compactor
from hotprefix.engine.strategy.kit import strategy_kit
from hotprefix.engine.strategy.settings import StrategySettings
from hotprefix.engine.strategy.tally import Tally
from hotprefix.keys.chain import TokenHistory
from hotprefix.kv.pool import BlockPool
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import open_store
from hotprefix.pages.arena import BlockArena
from hotprefix.prompt.hf_tokenizer import HfTokenizer

CHUNK = 256
SLICES = 20
"""Points of the curve of perplexity over the text."""


def losses_of(runner: PagedRunner, row: Row, followers: list[int]) -> NDArray[np.float64]:
    """Minus the log-probability (nats) of the followers of the row's last tokens."""
    if not followers:
        runner.run([row])
        return np.empty(0)
    logits = runner.score(row)[-len(followers) :]
    top = logits.max(axis=1, keepdims=True)
    norms = np.log(np.exp(logits - top).sum(axis=1, dtype=np.float64)) + top[:, 0]
    return np.asarray(norms - logits[np.arange(len(followers)), followers], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Arm:
    """A compiled model with its arena, and what cuts caches in it."""

    runner: PagedRunner
    cache: UncachedCache
    block_bytes: int
    compactor: Compactor
    cutters: dict[str, Cutter]
    tells_attention: bool

    def open(self) -> Holding:
        """An empty sequence."""
        history = TokenHistory(BlockKey(b"\0" * 32), (), self.cache.block_size)
        holding = self.cache.open(history, self.cache.plan(history, Room(0, 0)))
        if holding is None:
            raise RuntimeError("the arena is full")
        return holding

    def make_room(self, holding: Holding, cutter: Cutter | None, tally: Tally | None) -> int:
        """Cut the cache if it is full; how many tokens can be computed then."""
        if cutter is None:
            return CHUNK
        if holding.cached >= cutter.budget:
            self.compactor.compact(holding, cutter, tally)
        return min(CHUNK, cutter.budget - holding.cached)

    def row(self, holding: Holding, tokens: list[int]) -> Row:
        """A pass over `tokens`."""
        if not self.cache.grow(holding, holding.cached + len(tokens)):
            raise RuntimeError("the arena is full")
        return Row(tokens, holding.cached, holding.table, True)

    def note(self, holding: Holding, count: int, tally: Tally | None) -> None:
        """The pass has been computed."""
        holding.computed += count
        if tally is not None:
            tally.note(self.runner.attention()[0], self.runner.looked_back(count))


def arm(manifest: ModelManifest, told: Told, budget: int, longest: int) -> Arm:
    """An engine's parts without its steps: enough to read a text with."""
    core = ov.Core()
    graph = read_paged_model(core, manifest.graph, manifest.ropes, told)
    compiled = compile_paged_model(core, graph, "auto", None)
    kv = kv_format(compiled)
    blocks = -(-max(longest, 2 * budget) // kv.block_size) + 2
    arena = BlockArena(kv, blocks)
    cache = UncachedCache(BlockPool(blocks - 1), ReuseRules(kv.block_size))
    judge = "attention" if told is Told.ATTENTION else "keydiff"
    settings = StrategySettings(scorer=judge, longest=longest + 1)
    rotary = rotary_of(core, graph, kv.inputs[-1].block_shape[-1])
    kit = strategy_kit(settings, manifest.context_length, arena, cache, lambda: rotary)
    if kit.compactor is None:
        raise RuntimeError("this model's keys can't be moved")
    window, mixed = StrategyChoice(StrategyName.WINDOW, budget), StrategyChoice(StrategyName.MIXED, budget)
    choices = {
        "window": replace(window, keys=0.0),
        f"window, keys by {judge}": replace(window, keys=0.25),
        f"mixed by {judge}": mixed,
    }
    cutters = {name: kit.strategies.choose(choice).cutter for name, choice in choices.items()}
    return Arm(
        PagedRunner(compiled, arena, BlockId(blocks - 1)),
        cache,
        kv.block_bytes,
        kit.compactor,
        {name: cutter for name, cutter in cutters.items() if cutter is not None},
        told is Told.ATTENTION,
    )


def read(
    arm: Arm, ids: list[int], cutter: Cutter | None, skipped: int = 0
) -> tuple[NDArray[np.float64], int]:
    """Losses of all tokens behind the first `skipped` + 1, and the most blocks that were in use."""
    holding, tally = arm.open(), Tally() if cutter is not None and arm.tells_attention else None
    losses: list[NDArray[np.float64]] = []
    at = most = 0
    while at < len(ids) - 1:
        room = arm.make_room(holding, cutter, tally)
        tokens = ids[at : min(at + room, len(ids) - 1)]
        row = arm.row(holding, tokens)
        followers = ids[max(at, skipped) + 1 : at + 1 + len(tokens)]
        losses.append(losses_of(arm.runner, row, followers))
        arm.note(holding, len(tokens), tally)
        at += len(tokens)
        most = max(most, len(holding.table))
    arm.cache.close(holding)
    return np.concatenate(losses), most


def read_anew(arm: Arm, ids: list[int], budget: int, step: int, console: Console) -> NDArray[np.float64]:
    """Losses where each window is computed from nothing: the latest tokens, `step` of which are new."""
    first, _ = read(arm, ids[: budget + 1], None)
    losses = [first]
    starts = range(budget, len(ids) - 1, step)
    for start in track(starts, "every window anew", console=console):
        end = min(start + step, len(ids) - 1)
        window, _ = read(arm, ids[start - (budget - step) : end + 1], None, budget - step)
        losses.append(window)
    return np.concatenate(losses)


def cut_share(arm: Arm, ids: list[int], cutter: Cutter, tokens: int) -> tuple[float, float, float]:
    """Seconds of a decode step, seconds of a cut, and the share of cuts in the time of all steps."""
    clock, holding = SystemClock(), arm.open()
    tally = Tally() if arm.tells_attention else None
    for at in range(0, cutter.budget, CHUNK):
        part = ids[at : min(at + CHUNK, cutter.budget)]
        arm.runner.run([arm.row(holding, part)])
        arm.note(holding, len(part), tally)
    cuts: list[float] = []
    steps: list[float] = []
    for token in ids[:tokens]:
        start = clock.now()
        is_full = holding.cached >= cutter.budget
        arm.make_room(holding, cutter, tally)
        if is_full:
            cuts.append(clock.now() - start)
        arm.runner.run([arm.row(holding, [token])])
        arm.note(holding, 1, tally)
        steps.append(clock.now() - start)
    arm.cache.close(holding)
    return float(np.median(steps)), float(np.median(cuts)), sum(cuts) / sum(steps)


def measure(manifest: ModelManifest, budget: int, windows: int, console: Console) -> Finding:
    """All arms over the same text."""
    ids = text_ids(manifest, budget * windows + 1)
    plain = arm(manifest, Told.LOGITS, budget, len(ids))
    watched = arm(manifest, Told.ATTENTION, budget, len(ids))
    found: dict[str, NDArray[np.float64]] = {}
    most: dict[str, int] = {}
    found["whole cache"], most["whole cache"] = read(plain, ids, None)
    for one in (plain, watched):
        for name, cutter in one.cutters.items():
            if name not in found:
                found[name], most[name] = read(one, ids, cutter)
    size = plain.cache.block_size
    step = size * max(1, -(-(budget - 4) // (10 * size)))
    found["every window anew"] = read_anew(plain, ids, budget, step, console)
    times = {
        name: cut_share(one, ids, one.cutters[name], 10 * step + 1)
        for one, name in ((plain, "window"), (watched, "window, keys by attention"))
    }
    return _finding(found, most, times, budget, plain.block_bytes)


def text_ids(manifest: ModelManifest, count: int) -> list[int]:
    """The first tokens of Python's own help texts, the longest of them first."""
    text = "\n".join(topics[name] for name in sorted(topics, key=lambda name: (-len(topics[name]), name)))
    ids = HfTokenizer(manifest.tokenizer).encode(text[: 8 * count])
    if len(ids) < count:
        raise RuntimeError(f"the text has {len(ids)} tokens, {count} are needed")
    return ids[:count]


def perplexity(losses: NDArray[np.float64], budget: int) -> float:
    """Behind the first window, which is the same for all."""
    return float(np.exp(losses[budget:].mean()))


def _finding(
    found: dict[str, NDArray[np.float64]],
    most: dict[str, int],
    times: dict[str, tuple[float, float, float]],
    budget: int,
    block_bytes: int,
) -> Finding:
    anew = perplexity(found["every window anew"], budget)
    facts: dict[str, float | int | str] = {}
    measures, targets = [], []
    for name, losses in found.items():
        value = perplexity(losses, budget)
        measures.append(Measure(f"perplexity, {name}", "", (value,)))
        facts[f"{name}, against every window anew"] = f"{value / anew - 1:+.2%}"
    for name in ("window", "window, keys by attention"):
        above = 100 * (perplexity(found[name], budget) / anew - 1)
        targets.append(Target(f"perplexity, {name}, above every window anew", "%", above, Bound.AT_MOST, 2.0))
    for name, blocks in most.items():
        facts[f"{name}, KV in the arena"] = f"{blocks * block_bytes / 1e6:.1f} MB"
    saved = 100 * (1 - most["window"] / most["whole cache"])
    targets.append(Target("memory saved", "%", saved, Bound.AT_LEAST, 63.0))
    for name, (step, cut, share) in times.items():
        measures += [Measure(f"decode step, {name}", "s", (step,)), Measure(f"cut, {name}", "s", (cut,))]
        targets.append(Target(f"share of decoding in cuts, {name}", "%", 100 * share, Bound.AT_MOST, 2.0))
    return Finding(
        name="window",
        title=f"A window of {budget} tokens over {len(next(iter(found.values())))} tokens",
        about="Perplexity of Python's help texts behind the first window, KV memory, and time in cuts "
        "while tokens are decoded one by one.",
        measures=tuple(measures),
        targets=tuple(targets),
        charts=(_chart(found),),
        facts=facts,
    )


def _chart(found: dict[str, NDArray[np.float64]]) -> Chart:
    places = tuple(float(place + 1) for place in range(SLICES))
    series = [
        Series(name, tuple(float(np.exp(part.mean())) for part in np.array_split(losses, SLICES)), places)
        for name, losses in found.items()
    ]
    return Chart(ChartKind.LINES, "Perplexity along the text", "twentieths of the text", "", tuple(series))


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    model: Annotated[str, typer.Option("--model", help="Name or path of the model.")] = DEFAULT_MODEL,
    window: Annotated[int, typer.Option("--window", help="Tokens of the window.", min=128)] = 768,
    windows: Annotated[int, typer.Option("--windows", help="Windows in the text.", min=2)] = 10,
) -> None:
    """Measure, show and write."""
    console = Console()
    manifest = open_store(os.environ).resolve(model)
    finding = measure(manifest, window, windows, console)
    command = shlex.join(["python", "bench/window.py", *sys.argv[1:]])
    report = Report("A window against the whole cache", command, read_environment(SystemClock()), [finding])
    show(report, console)
    write_report(report, out, "window")


if __name__ == "__main__":
    typer.run(main)
