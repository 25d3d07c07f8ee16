"""Restoring a prefix from a tier against computing it: one engine, one run, 2,048 tokens.

Prompts are computed, pushed out of the arena by others, and fetched again. A restore is over when all
blocks are in the arena and can be reused. Run: python bench/restore.py [--tier ram] [--codec raw]
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
from pathlib import Path
from queue import Queue
from random import Random
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import RequestId
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Finding, Measure, Target, bars
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.engine.front import ServedModel
from hotprefix.engine.loader import load_engine
from hotprefix.engine.observer import NullObserver
from hotprefix.engine.request import Delta, GenerationRequest, Sampling
from hotprefix.engine.settings import EngineSettings
from hotprefix.keys.chain import TokenHistory
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import open_store
from hotprefix.prompt.answers import AnswerMemory
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.segments import SegmentedTokenizer
from hotprefix.prompt.template import JinjaTemplate
from hotprefix.tiers.settings import TierSettings

TOKENS = 2048
ARENA_BYTES = 68 * 737_280
"""One prefix of the default model, and little more: each pushes out the one before."""
GIB = 1 << 30
LEAST = {"ram": 50.0, "disk": 20.0, "redis": 10.0}


class Machine:
    """An engine stepped by hand."""

    def __init__(self, manifest: ModelManifest, tiers: TierSettings) -> None:
        tokenizer = SegmentedTokenizer(HfTokenizer(manifest.tokenizer), 1 << 20)
        template = JinjaTemplate(manifest.chat_template)
        model = ServedModel(
            manifest.name, (), manifest.context_length, 0, tokenizer, template, manifest.fingerprint
        )
        settings = EngineSettings(arena_bytes=ARENA_BYTES, logits_bytes=0, tiers=tiers)
        answers = AnswerMemory(tokenizer, 1 << 20)
        engine = load_engine(manifest, model, answers, settings, NullObserver(), SystemClock())
        self.stepper = engine.stepper
        self.inbox: Queue[Callable[[], None]] = Queue()
        self.stepper.connect(self.inbox.put)
        assert engine.tiering is not None
        self.tiering = engine.tiering
        self._count = 0

    def ask(self, prompt: Sequence[int]) -> tuple[float, int]:
        """Seconds to the first token, waiting for the tiers included, and prompt tokens reused."""
        self._count += 1
        deltas: list[Delta] = []
        sampling = Sampling(max_tokens=1, temperature=0, ignore_eos=True)
        request = GenerationRequest(RequestId(f"r{self._count}"), list(prompt), sampling)
        state = self.stepper.prepare(request, deltas.append)
        start = time.perf_counter()
        self.stepper.enqueue(state)
        while not deltas:
            if self.stepper.idle:
                self.inbox.get()()
            self.stepper.step()
        seconds = time.perf_counter() - start
        usage = deltas[-1].usage
        return seconds, usage.cached_tokens if usage is not None else 0

    def restore(self, prompt: Sequence[int]) -> float:
        """Seconds until the prefix can be reused."""
        history = TokenHistory(self.stepper.root_for(""), prompt, self.stepper.cache.block_size)
        landed: list[bool] = []
        start = time.perf_counter()
        if not self.tiering.restore(history, lambda: landed.append(True)):
            raise SystemExit("the tier does not have the prefix: nothing to measure")
        while not landed:
            self.inbox.get()()
        return time.perf_counter() - start

    def rest(self) -> None:
        """Let the tiers write all that is to be written."""
        while self.stepper.save_some():
            pass
        self.tiering.stack.flush(60)


@contextmanager
def redis_url(tier: str, folder: Path) -> Iterator[str]:
    """A Redis server of our own, over loopback."""
    if tier != "redis":
        yield ""
        return
    binary = shutil.which("redis-server") or shutil.which("valkey-server")
    if binary is None:
        raise SystemExit("redis-server is not installed: apt-get install redis-server")
    port = 6399
    process = subprocess.Popen(
        [binary, "--port", str(port), "--save", "", "--dir", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        if "eady to accept" in line:
            break
    try:
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.kill()
        process.wait()


def measure(manifest: ModelManifest, tier: str, codec: str, rounds: int) -> Finding:
    """Prefill and restore, one after the other, `rounds` times."""
    with tempfile.TemporaryDirectory() as name, redis_url(tier, Path(name)) as url:
        tiers = TierSettings(
            ram_bytes=GIB if tier == "ram" else 0,
            disk_bytes=GIB if tier == "disk" else 0,
            redis_bytes=GIB if tier == "redis" else 0,
            disk_folder=Path(name) / "kv",
            redis_url=url,
            codec=codec,
        )
        machine, random = Machine(manifest, tiers), Random(1)
        prompts = [[random.randrange(100, 40_000) for _ in range(TOKENS + 2)] for _ in range(rounds + 1)]
        prefills, restores, repeats = [], [], []
        for prompt in track(prompts, f"{tier} {codec}: computing", console=Console(stderr=True)):
            prefills.append(machine.ask(prompt)[0])
            machine.ask(prompt)  # used again: now it is worth keeping anywhere
            machine.rest()
        for prompt in prompts[:-1]:
            restores.append(machine.restore(prompt[:TOKENS]))
            machine.rest()
        for prompt in prompts[:-1]:
            seconds, reused = machine.ask(prompt)
            if reused != TOKENS:
                raise SystemExit(f"{reused} tokens were reused instead of {TOKENS}")
            repeats.append(seconds)
            machine.rest()
        machine.stepper.close()
    # The first prefill and the first restore find cold memory.
    computing = Measure("prefill", "s", tuple(prefills[1:]))
    restoring = Measure("restore", "s", tuple(restores))
    whole = Measure("first token, restore included", "s", tuple(repeats))
    target = Target(
        f"prefill ÷ restore, {tier}",
        "×",
        computing.middle / restoring.middle,
        Bound.AT_LEAST,
        LEAST[tier],
    )
    ratio = Measure("first token cold ÷ restored", "×", (computing.middle / whole.middle,))
    return Finding(
        f"{tier}-{codec}",
        f"{TOKENS:,} tokens from {tier}, {codec}",
        "A prefix that was pushed out of the arena comes back; medians of one run.",
        (computing, restoring, whole, ratio),
        (target,),
        (bars("Seconds", (computing, restoring, whole), "seconds", log_y=True),),
    )


def main(
    tier: Annotated[
        list[str] | None, typer.Option(help="ram, disk or redis; repeatable. Default: all.")
    ] = None,
    codec: Annotated[list[str] | None, typer.Option(help="Default: raw and int8.")] = None,
    rounds: Annotated[int, typer.Option(min=2)] = 7,
    out: Annotated[Path | None, typer.Option(help="Folder for JSON and plots.")] = None,
) -> None:
    """Restore against prefill, by tier and codec."""
    manifest = open_store(os.environ).resolve(DEFAULT_MODEL)
    findings = [
        measure(manifest, name, form, rounds) for name in tier or LEAST for form in codec or ("raw", "int8")
    ]
    command = shlex.join(["python", *sys.argv])
    report = Report("Restore against prefill", command, read_environment(SystemClock()), findings)
    show(report, Console())
    if out is not None:
        write_report(report, out, "restore")


if __name__ == "__main__":
    typer.run(main)
