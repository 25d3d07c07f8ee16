"""A bar that says how many prefixes are warm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Advance = Callable[[str], None]
"""One more is done; the text names it."""


@contextmanager
def warm_bar(console: Console, title: str, total: int) -> Iterator[Advance]:
    """A moving bar on a terminal, nothing elsewhere, and nothing for nothing to do."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns,
        TextColumn("{task.fields[label]}"),
        console=console,
        transient=True,
        disable=not (total and console.is_terminal),
    ) as bar:
        task = bar.add_task(title, total=total, label="")

        def advance(label: str) -> None:
            bar.update(task, advance=1, label=label[:40])

        yield advance
