"""`hotprefix explain`: why a request did not get more from the cache."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from io import StringIO
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hotprefix.app.doctor_options import (
    Home,
    Model,
    OutputFile,
    ProfileName,
    ProfilesDir,
    Redact,
    TemplateFile,
    TokenizerFile,
    text_model,
    trouble_told,
    wide_console,
)
from hotprefix.base.clock import SystemClock
from hotprefix.doctor.explain.difference import CONTEXT
from hotprefix.doctor.explain.facts import log_facts, pair_facts
from hotprefix.doctor.explain.log import LogExplanation, explain_log
from hotprefix.doctor.explain.page import log_page, pair_page
from hotprefix.doctor.explain.pair import Pair, explain_pair
from hotprefix.doctor.explain.terminal import show_log, show_pair
from hotprefix.doctor.explain.trial import Trial
from hotprefix.doctor.reading import UnreadableFile, read_requests
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rendering import Renderer
from hotprefix.profiles.loader import load_profiles

EXPLAIN_EPILOG = """
[bold]Examples[/]

hotprefix explain monday.json tuesday.json --model smollm2-135m-instruct

hotprefix explain requests.jsonl --profile dashscope-2026-10 --format html -o why.html

[bold]Exit codes[/]  0: nothing lost that could be avoided. 1: something was. 2: it could not be told.
"""

_STEP = 1 << 20


class Format(StrEnum):
    """How an explanation is shown."""

    TERMINAL = "terminal"
    JSON = "json"
    HTML = "html"


Files = Annotated[
    list[Path],
    typer.Argument(
        help="Two requests (JSON, YAML), or logs of any number (JSONL).", exists=True, dir_okay=False
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How to show it.", rich_help_panel="Output")
]
Context = Annotated[
    int,
    typer.Option(
        "--context", min=0, max=2_000, help="Characters around a difference.", rich_help_panel="Output"
    ),
]
Worst = Annotated[
    int, typer.Option("--worst", min=0, help="Causes to list of a log.", rich_help_panel="Output")
]


def explain_command(
    files: Files,
    *,
    model: Model = None,
    tokenizer: TokenizerFile = None,
    template: TemplateFile = None,
    home: Home = None,
    profile: ProfileName = None,
    profiles_dir: ProfilesDir = None,
    form: FormatOption = Format.TERMINAL,
    output: OutputFile = None,
    context: Context = CONTEXT,
    worst: Worst = 10,
    redact: Redact = False,
) -> None:
    """Say why a request did not get more from the cache, from its bytes to the verdict.

    Two requests are laid side by side. Of a log, every request is held against the earlier ones.
    """
    with trouble_told():
        texts = text_model(home, model, tokenizer, template)
        renderer = Renderer(texts, load_profiles(profiles_dir), profile)
        trial = Trial(estimates=texts.is_estimate, wall=SystemClock().wall())
        requests = chain.from_iterable(read_requests(file) for file in files)
        first = list(islice(requests, 3))
        if len(first) < 2:
            raise UnreadableFile(
                f"{files[0]} has one request, which there is nothing to compare with. Give two."
            )
        if len(first) == 2:
            pair = explain_pair(renderer, trial, first[0], first[1], context)
            pair = pair.redacted() if redact else pair
            _write(_pair_text(pair, form, output), output)
            report = pair.new.report
            raise typer.Exit(1 if report.avoidable and report.lost_tokens else 0)
        with _progress(files) as seen:
            log = explain_log(renderer, trial, chain(first, requests), seen)
        log = log.redacted() if redact else log
        _write(_log_text(log, form, output, worst), output)
        raise typer.Exit(1 if log.avoidable.lost else 0)


def _pair_text(pair: Pair, form: Format, output: Path | None) -> str:
    match form:
        case Format.JSON:
            return _json(pair_facts(pair))
        case Format.HTML:
            return pair_page(pair)
        case Format.TERMINAL:
            return _shown(lambda out: show_pair(pair, out), output)


def _log_text(log: LogExplanation, form: Format, output: Path | None, worst: int) -> str:
    match form:
        case Format.JSON:
            return _json(log_facts(log, worst))
        case Format.HTML:
            return log_page(log, worst)
        case Format.TERMINAL:
            return _shown(lambda out: show_log(log, out, worst), output)


def _shown(show: Callable[[Console], None], output: Path | None) -> str:
    """What is shown on the terminal at once, or as the text of a file."""
    if output is None:
        show(wide_console())
        return ""
    text = StringIO()
    show(Console(width=120, file=text))
    return text.getvalue()


def _json(facts: dict[str, object]) -> str:
    return orjson.dumps(facts, option=orjson.OPT_INDENT_2).decode() + "\n"


def _write(text: str, output: Path | None) -> None:
    if output is not None:
        output.write_text(text, encoding="utf-8")
        Console(stderr=True).print(f"Wrote {output}.", highlight=False, soft_wrap=True, markup=False)
    elif text:
        sys.stdout.write(text)


@contextmanager
def _progress(files: Sequence[Path]) -> Iterator[Callable[[Recorded], None]]:
    """A bar on standard error, if that is a terminal."""
    err = Console(stderr=True)
    columns = (TextColumn("Reading"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        total = sum(map(_lines, files)) if err.is_terminal else None
        task = bar.add_task("requests", total=total)
        yield lambda _: bar.advance(task)


def _lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(part.count(b"\n") for part in iter(lambda: stream.read(_STEP), b""))
