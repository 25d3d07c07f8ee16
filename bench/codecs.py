"""What the storage codecs do to the default model's KV of a prose text: size, speed and error.

Prefills the text, then codes its blocks one by one on one thread, as a tier does, codecs in turns. Rates
count that thread's processor time, so others on the machine matter little. `restore` decodes all blocks
from RAM into the arena, by the clock, as the prefill is. Run: python bench/codecs.py [--out FOLDER]
"""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pydoc_data.topics import topics
from statistics import median
from typing import Annotated

import numpy as np
import openvino as ov
import typer
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from hotprefix.base.clock import SystemClock
from hotprefix.base.ids import BlockId
from hotprefix.bench.environment import read_environment
from hotprefix.bench.findings import Bound, Finding, Measure, Target, bars
from hotprefix.bench.report import Report, write_report
from hotprefix.bench.table import show
from hotprefix.engine.graph import compile_paged_model, kv_format, read_paged_model
from hotprefix.engine.rotary_of import rotary_of
from hotprefix.engine.runner import PagedRunner, Row
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import open_store
from hotprefix.pages.arena import BlockArena
from hotprefix.pages.codecs.base import BlockCodec
from hotprefix.pages.codecs.calibrations import find_calibration
from hotprefix.pages.codecs.catalogue import build_codec
from hotprefix.pages.codecs.floats import widen
from hotprefix.pages.codecs.layout import Tensors, tensors_of
from hotprefix.pages.rotary import Rotary
from hotprefix.prompt.hf_tokenizer import HfTokenizer

CODECS = ("raw", "int8", "layered", "int4", "fp8", "mixed")
TOKENS = 2048
CHUNK = 512
RESTORE_LIMIT = 50.0
LEAST_RATIO = {"int8": 1.9, "layered": 1.75}

Blocks = NDArray[np.uint8]
"""[blocks, block bytes]"""


class Prefix:
    """The KV of a text in an arena, and how long computing it took."""

    def __init__(self, manifest: ModelManifest, tokens: int) -> None:
        core = ov.Core()
        model = read_paged_model(core, manifest.graph)
        compiled = compile_paged_model(core, model, "auto", None)
        self.kv = kv_format(compiled)
        self.count = tokens // self.kv.block_size
        self.arena = BlockArena(self.kv, 2 * self.count + 1)
        self.rotary = rotary_of(core, model, self.kv.inputs[0].block_shape[-1])
        self._runner = PagedRunner(compiled, self.arena, BlockId(2 * self.count))
        self._taught = find_calibration(manifest, None)
        self._ids = prose_ids(manifest, self.count * self.kv.block_size)
        self.prefill()
        self.blocks: Blocks = np.stack([self.arena.snapshot(BlockId(block)) for block in range(self.count)])

    @property
    def tokens(self) -> int:
        """Tokens of the prefix."""
        return len(self._ids)

    def prefill(self) -> float:
        """Seconds for computing the whole prefix."""
        table = [BlockId(block) for block in range(self.count)]
        start = time.perf_counter()
        for past in range(0, self.tokens, CHUNK):
            self._runner.run([Row(self._ids[past : past + CHUNK], past, table, True)])
        return time.perf_counter() - start

    def codec(self, name: str) -> BlockCodec:
        """A codec for these blocks; `mixed` with the model's calibration."""
        options = {"calibration": self._taught} if name == "mixed" else {}
        return build_codec(name, self.kv, self.rotary, **options)


def prose_ids(manifest: ModelManifest, count: int) -> list[int]:
    """The first tokens of Python's reference manual, as it comes with Python."""
    text = "\n".join(topics[name] for name in sorted(topics))
    return HfTokenizer(manifest.tokenizer).encode(text[: 20 * count])[:count]


@dataclass(slots=True)
class Trial:
    """One codec's payloads, and seconds for all blocks: of processor time, but `restore` by the clock."""

    codec: BlockCodec
    payloads: list[bytes] = field(default_factory=list)
    encode: list[float] = field(default_factory=list)
    decode: list[float] = field(default_factory=list)
    restore: list[float] = field(default_factory=list)

    def run(self, prefix: Prefix, out: Blocks) -> None:
        """Encode and decode all blocks, then restore them behind the prefix."""
        size = prefix.kv.block_size
        start = time.thread_time()
        self.payloads = [
            self.codec.encode(block, number * size, size) for number, block in enumerate(prefix.blocks)
        ]
        encoded = time.thread_time()
        for number, payload in enumerate(self.payloads):
            self.codec.decode(payload, number * size, size, out[number])
        self.decode.append(time.thread_time() - encoded)
        self.encode.append(encoded - start)
        self.restore.append(self.restored(prefix))

    def restored(self, prefix: Prefix) -> float:
        """Seconds for bringing all blocks into the arena."""
        size = prefix.kv.block_size
        block = np.empty(prefix.kv.block_bytes, np.uint8)
        start = time.perf_counter()
        for number, payload in enumerate(self.payloads):
            self.codec.decode(payload, number * size, size, block)
            prefix.arena.write(BlockId(prefix.count + number), block)
        return time.perf_counter() - start

    def ratio(self, prefix: Prefix) -> float:
        """How many times smaller the payloads are than the blocks."""
        return prefix.blocks.nbytes / sum(map(len, self.payloads))


class Signal:
    """Keys before the embedding and values of the blocks, and how loud an error is against them.

    Keys count less the mean of their channel in the block: what all of them share tells no token from
    another.
    """

    def __init__(self, prefix: Prefix) -> None:
        self._prefix = prefix
        self._groups = tensors_of(prefix.kv)

    def decibels(self, decoded: Blocks) -> tuple[float, float]:
        """Signal over error of keys and of values; infinite where there is no error."""
        powers, errors = [0.0, 0.0], [0.0, 0.0]
        for number, (before, after) in enumerate(zip(self._prefix.blocks, decoded, strict=True)):
            positions = number * self._prefix.kv.block_size + np.arange(self._prefix.kv.block_size)
            for group in self._groups:
                side = 0 if group.is_keys else 1
                was, now = (
                    numbers(group, block, self._prefix.rotary, positions) for block in (before, after)
                )
                errors[side] += float(((now - was) ** 2).sum(dtype=np.float64))
                if group.is_keys:
                    was = was - was.mean(axis=2, keepdims=True)
                powers[side] += float((was**2).sum(dtype=np.float64))
        keys, values = (
            10 * float(np.log10(power / error)) if error else float("inf")
            for power, error in zip(powers, errors, strict=True)
        )
        return keys, values


def numbers(
    group: Tensors, block: Blocks, rotary: Rotary | None, positions: NDArray[np.int64]
) -> NDArray[np.float32]:
    """[layers, heads, tokens, head size] in float32; keys turned back."""
    words = group.view(block)
    values = np.empty(words.shape, np.float32)
    widen(words, group.element_type, values)
    return rotary.rotated(values, -positions) if group.is_keys and rotary is not None else values


def measure(prefix: Prefix, names: Sequence[str], repeats: int, console: Console) -> Finding:
    """All codecs in turns, with a prefill in between, so that a slow moment meets all alike."""
    trials = {name: Trial(prefix.codec(name)) for name in names}
    out = np.empty_like(prefix.blocks)
    for trial in trials.values():  # memory and tables get warm
        trial.run(prefix, out)
        for times in (trial.encode, trial.decode, trial.restore):
            times.clear()
    prefills = []
    for _ in track(range(repeats), "codecs", console=console):
        prefills.append(prefix.prefill())
        for trial in trials.values():
            trial.run(prefix, out)
    signal, loudness = Signal(prefix), {}
    for name, trial in trials.items():
        trial.run(prefix, out)
        loudness[name] = signal.decibels(out)
    table(prefix, trials, loudness, median(prefills), console)
    return finding(prefix, trials, loudness, prefills)


def table(
    prefix: Prefix,
    trials: Mapping[str, Trial],
    loudness: Mapping[str, tuple[float, float]],
    prefill: float,
    console: Console,
) -> None:
    """A line for each codec."""
    shown = Table(title=f"{prefix.tokens:,} tokens of prose", title_justify="left")
    for heading in ("codec", "bytes/token", "smaller", "encode GB/s", "decode GB/s", "restore ms"):
        shown.add_column(heading, justify="right")
    for heading in ("prefill/restore", "keys dB", "values dB"):
        shown.add_column(heading, justify="right")
    for name, trial in trials.items():
        encode, decode, restore = map(median, (trial.encode, trial.decode, trial.restore))
        shown.add_row(
            name,
            f"{sum(map(len, trial.payloads)) / prefix.tokens:,.0f}",
            f"{trial.ratio(prefix):.3f}",
            f"{prefix.blocks.nbytes / encode / 1e9:.2f}",
            f"{prefix.blocks.nbytes / decode / 1e9:.2f}",
            f"{1000 * restore:.1f}",
            f"{prefill / restore:.0f}",
            *(f"{value:.1f}" for value in loudness[name]),
        )
    console.print(shown)


def finding(
    prefix: Prefix,
    trials: Mapping[str, Trial],
    loudness: Mapping[str, tuple[float, float]],
    prefills: Sequence[float],
) -> Finding:
    """The same for tables, plots and JSON."""
    gigabytes = prefix.blocks.nbytes / 1e9
    smaller, encode, decode, restore, errors = [], [], [], [], []
    targets = []
    for name, trial in trials.items():
        ratio = trial.ratio(prefix)
        smaller.append(Measure(f"{name}: smaller", "x", (ratio,)))
        encode.append(Measure(f"{name}: encode", "GB/s", tuple(gigabytes / took for took in trial.encode)))
        decode.append(Measure(f"{name}: decode", "GB/s", tuple(gigabytes / took for took in trial.decode)))
        restore.append(Measure(f"{name}: restore", "s", tuple(trial.restore)))
        if np.isfinite(loudness[name]).all():
            keys, values = loudness[name]
            errors.append(Measure(f"{name}: keys over error", "dB", (keys,)))
            errors.append(Measure(f"{name}: values over error", "dB", (values,)))
        if name in LEAST_RATIO:
            targets.append(Target(f"{name}, smaller", "x", ratio, Bound.AT_LEAST, LEAST_RATIO[name]))
        faster = median(prefills) / median(trial.restore)
        is_judged = name == "raw"
        targets.append(
            Target(
                f"{name}, prefill over restore from RAM",
                "x",
                faster if is_judged else None,
                Bound.AT_LEAST,
                RESTORE_LIMIT,
            )
        )
    prefill = Measure("prefill", "s", tuple(prefills))
    return Finding(
        name="codecs",
        title=f"Storage codecs on the KV of {prefix.tokens:,} tokens of prose",
        about=f"{prefix.count} blocks of {prefix.kv.block_bytes:,} bytes in {prefix.kv.element_type}, coded "
        "one by one on one thread. GB/s: bytes of the arena by processor time. Errors of keys are held "
        "against keys before the rotary embedding, less the mean of their channel in the block.",
        measures=(*smaller, *encode, *decode, *restore, prefill, *errors),
        targets=tuple(targets),
        charts=(
            bars("Throughput of decoding", decode, "GB/s"),
            bars("Throughput of encoding", encode, "GB/s"),
        ),
        facts={"tokens": prefix.tokens},
    )


def main(
    out: Annotated[Path, typer.Option("--out", help="Folder for the results.")] = Path("bench/out"),
    repeats: Annotated[int, typer.Option("--repeats", help="Passes over the blocks.")] = 9,
    tokens: Annotated[int, typer.Option("--tokens", help="Length of the prefix.")] = TOKENS,
) -> None:
    """Measure, show and write."""
    console = Console(width=120)
    prefix = Prefix(open_store(os.environ).resolve(DEFAULT_MODEL), tokens)
    found = measure(prefix, CODECS, repeats, console)
    command = shlex.join(["python", "bench/codecs.py", *sys.argv[1:]])
    report = Report("Storage codecs", command, read_environment(SystemClock()), [found])
    show(report, console)
    write_report(report, out, "codecs")


if __name__ == "__main__":
    typer.run(main)
