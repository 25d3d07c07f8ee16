"""What the cache's bookkeeping costs a long prompt, by the number of blocks in the tree.

Measures matching an 8,192-token prompt and allocating its blocks, on the real tree, pool and
cache, without a model. Run: python bench/bookkeeping.py [--out FOLDER]
"""

from __future__ import annotations

import random
import shlex
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import BlockId, BlockKey
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Chart, ChartKind, Finding, Measure, Series, Target
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.cache.logits import LogitsStore
from hotprefix.cache.prefix import PrefixCache
from hotprefix.cache.rules import ReuseRules
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.scope import CacheScope
from hotprefix.kv.policy import POLICIES
from hotprefix.kv.pool import BlockPool
from hotprefix.kv.tree import BlockTree

BLOCK = 32
PROMPT = 8192
SIZES = (1_000, 10_000, 100_000)
LIMIT_SECONDS = 0.002
LARGEST_GROWTH = 2.0
"""For a tree a hundred times larger: deeper heaps and colder memory, but no term in its size."""
VOCABULARY = 49_152
_FILL_PROMPT = 1024
_SHARED = 256
_FAMILIES = 50


class NoCopies:
    """There are no bytes to move."""

    def copy(self, source: BlockId, target: BlockId) -> None:
        """Nothing to do."""


@dataclass(frozen=True, slots=True)
class Case:
    """A prompt of which a share is in the tree, and whether the pool is full."""

    name: str
    known: int
    full: bool


Times = dict[tuple[Case, int], list[tuple[float, float]]]
"""By case and blocks in the tree: seconds for the keys, and for match and allocation."""

CASES = (
    Case("all of it known", PROMPT, False),
    Case("half known", PROMPT // 2, False),
    Case("nothing known", 0, False),
    Case("nothing known, pool full", 0, True),
)


class Bookkeeping:
    """A cache with `blocks` blocks in its tree: families of prompts with a shared beginning."""

    def __init__(self, blocks: int, policy: str, *, full: bool) -> None:
        self._random = random.Random(blocks)
        self._full = full
        room = 0 if full else 8 * PROMPT // BLOCK
        self.cache = PrefixCache(
            BlockPool(blocks + room),
            BlockTree(BLOCK, POLICIES[policy](blocks + room)),
            ReuseRules(BLOCK),
            LogitsStore(0),
            NoCopies(),
        )
        self.root: BlockKey = CacheScope("model", "kv").root()
        self._fill(blocks)

    def ids(self, count: int) -> list[int]:
        """Random token ids."""
        return self._random.choices(range(VOCABULARY), k=count)

    def add(self, token_ids: list[int]) -> None:
        """Run a prompt through the cache as the engine would, without computing anything."""
        history = TokenHistory(self.root, token_ids, BLOCK)
        holding = self.cache.open(history, self.cache.plan(history))
        if holding is None:
            raise RuntimeError("the pool is too small for this benchmark")
        holding.computed = holding.prefilled = len(history)
        self.cache.close(holding)

    def seconds(self, token_ids: list[int]) -> tuple[float, float]:
        """For a request's keys (hashing its tokens), and for match and allocation behind them.

        In a full pool the prompt then stays in the tree, so that the next one has to evict again.
        """
        start = time.perf_counter()
        history = TokenHistory(self.root, token_ids, BLOCK)
        history.keys(len(token_ids) // BLOCK)
        hashed = time.perf_counter()
        plan = self.cache.plan(history)
        holding = self.cache.open(history, plan)
        done = time.perf_counter()
        if holding is None:
            raise RuntimeError("the pool is too small for this benchmark")
        if self._full:
            holding.computed = holding.prefilled = len(history)
        self.cache.close(holding)
        return hashed - start, done - hashed

    def _fill(self, blocks: int) -> None:
        families = [self.ids(_SHARED) for _ in range(_FAMILIES)]
        # In a full pool the last prompts evict what is too much; otherwise it ends with the room.
        while len(self.cache.tree) + _FILL_PROMPT // BLOCK <= blocks:
            self.add(self._random.choice(families) + self.ids(_FILL_PROMPT - _SHARED))
        missing = blocks - len(self.cache.tree)
        if missing:
            self.add(self.ids(missing * BLOCK))


def measure(policy: str, repeats: int, console: Console) -> Finding:
    """All cases at all sizes. Sizes take turns, so that a slow moment of the machine meets all alike."""
    found: Times = {}
    for case in track(CASES, "bookkeeping", console=console):
        sizes = [size for size in SIZES if not case.full or size * BLOCK > PROMPT]
        subjects = {size: Bookkeeping(size, policy, full=case.full) for size in sizes}
        known = {size: subject.ids(case.known) for size, subject in subjects.items()}
        for size, subject in subjects.items():
            found[case, size] = []
            if known[size]:
                subject.add(known[size])
        for _ in range(repeats):
            for size, subject in subjects.items():
                prompt = known[size] + subject.ids(PROMPT - case.known)
                found[case, size].append(subject.seconds(prompt))
    return _finding(policy, found)


def _finding(policy: str, found: Times) -> Finding:
    measures = [
        Measure(f"{case.name}, {size:,} blocks", "s", tuple(total for _, total in times))
        for (case, size), times in found.items()
    ]
    hashing = Measure(
        "keys of the prompt (BLAKE2b)", "s", tuple(h for times in found.values() for h, _ in times)
    )
    slowest = max(median(t for _, t in times) for (_, size), times in found.items() if size == SIZES[-1])
    growth = max(
        median(t for _, t in found[case, SIZES[-1]]) / median(t for _, t in found[case, SIZES[0]])
        for case in CASES
        if (case, SIZES[0]) in found
    )
    return Finding(
        name="bookkeeping",
        title=f"Bookkeeping of a {PROMPT:,}-token prompt",
        about=f"Plan and open (match, lease, allocate) on a tree of {BLOCK}-token blocks, policy {policy}; "
        "the slowest case counts.",
        measures=(*measures, hashing),
        targets=(
            Target(f"match and allocation, {SIZES[-1]:,} blocks", "s", slowest, Bound.AT_MOST, LIMIT_SECONDS),
            Target(
                f"growth from {SIZES[0]:,} to {SIZES[-1]:,} blocks",
                "x",
                growth,
                Bound.AT_MOST,
                LARGEST_GROWTH,
            ),
        ),
        charts=(_chart(found),),
    )


def _chart(found: Times) -> Chart:
    series = []
    for case in CASES:
        sizes = [size for other, size in found if other is case]
        middles = tuple(1000 * median(total for _, total in found[case, size]) for size in sizes)
        series.append(Series(case.name, middles, tuple(sizes)))
    return Chart(
        ChartKind.LINES,
        "Match and allocate",
        "blocks in the tree (log)",
        "milliseconds",
        tuple(series),
        marks=(("limit", 1000 * LIMIT_SECONDS),),
        log_x=True,
    )


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    policy: Annotated[str, typer.Option("--policy", help="Eviction policy.")] = "adaptive",
    repeats: Annotated[int, typer.Option("--repeats", help="Prompts per point.")] = 50,
) -> None:
    """Measure, show and write."""
    console = Console()
    finding = measure(policy, repeats, console)
    command = shlex.join(["python", "bench/bookkeeping.py", *sys.argv[1:]])
    report = Report("Cost of bookkeeping", command, read_environment(SystemClock()), [finding])
    show(report, console)
    write_report(report, out, "bookkeeping")


if __name__ == "__main__":
    typer.run(main)
