"""What `quality` and `calibrate` share: the model, its texts, and a bar that moves."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

from hotprefix.models.manifest import ModelManifest
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.quality.texts import Library, own_texts, texts_of


class Bar:
    """One bar for each stage."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._task = bars.add_task("", total=0, visible=False)

    def begin(self, stage: str, steps: int) -> None:
        """The next stage."""
        self._task = self._bars.add_task(stage, total=steps)

    def step(self) -> None:
        """One more of its steps is done."""
        self._bars.advance(self._task)


@contextmanager
def bar_on(console: Console) -> Iterator[Bar]:
    """Bars while the block runs, on a terminal. SIGTERM ends the block as Ctrl-C does."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with RichProgress(*columns, console=console, disable=not console.is_terminal) as bars:
            yield Bar(bars)
    finally:
        signal.signal(signal.SIGTERM, before)


def library_for(manifest: ModelManifest, texts: Sequence[Path]) -> tuple[Library, HfTokenizer]:
    """The texts given, or else those that come with Python."""
    tokenizer = HfTokenizer(manifest.tokenizer)
    return Library(texts_of(texts) if texts else own_texts(), tokenizer, manifest), tokenizer


def this_command() -> str:
    """The shell line that repeats this run."""
    return shlex.join(["hotprefix", *sys.argv[1:]])
