"""`hotprefix gate`: fails a CI run if a change to prompts lowers what can be cached."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import orjson
import typer

from hotprefix.app.doctor_options import (
    Home,
    Model,
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
from hotprefix.doctor.gate.compare import Bench, Wanted, compare_logs, compare_revisions
from hotprefix.doctor.gate.contexts import read_contexts
from hotprefix.doctor.gate.facts import gate_facts
from hotprefix.doctor.gate.repository import Repository
from hotprefix.doctor.gate.summary import github_commands, markdown
from hotprefix.doctor.gate.terminal import show_gate
from hotprefix.doctor.gate.verdict import Gate, Limits
from hotprefix.doctor.reading import read_requests
from hotprefix.profiles.loader import load_profiles

GATE_EPILOG = """
[bold]Examples[/]

hotprefix gate --base origin/main prompts/ --context contexts.jsonl --limit 2%

hotprefix gate before.jsonl after.jsonl --format json

[bold]Exit codes[/]  0: passed. 1: the cacheable share fell too far. 2: it could not be told.
"""

_STEP_SUMMARY = "GITHUB_STEP_SUMMARY"


class Format(StrEnum):
    """How the verdict is shown; `github` writes workflow commands, and the job's summary."""

    TERMINAL = "terminal"
    JSON = "json"
    GITHUB = "github"


def _points(text: str) -> float:
    """`2%` or `2`: two percentage points, as 0.02."""
    try:
        points = float(text.strip().removesuffix("%"))
    except ValueError:
        points = -1.0
    if not 0 <= points <= 100:
        raise typer.BadParameter(f"{text!r} is no number of percentage points from 0 to 100, such as 2%.")
    return points / 100


_REVISIONS, _VERDICT = "Revisions", "Verdict"

Paths = Annotated[
    list[str] | None,
    typer.Argument(help="With --base: folders and files with prompts. Else: two logs, before and after."),
]
Base = Annotated[
    str | None,
    typer.Option(
        "--base",
        help="Compare two revisions of a git repository: where HEAD left this one, and HEAD.",
        rich_help_panel=_REVISIONS,
    ),
]
Head = Annotated[str, typer.Option("--head", help="The revision that is judged.", rich_help_panel=_REVISIONS)]
Repo = Annotated[
    Path,
    typer.Option(
        "--repo", help="A folder in the repository.", file_okay=False, exists=True, rich_help_panel=_REVISIONS
    ),
]
ContextFile = Annotated[
    Path | None,
    typer.Option(
        "--context",
        help="Values for prompts that are templates: JSON, JSONL or YAML, an object for each request.",
        dir_okay=False,
        exists=True,
        rich_help_panel=_REVISIONS,
    ),
]
RequestModel = Annotated[
    str,
    typer.Option(
        "--request-model",
        help="The model that prompts without one are for: it chooses rules and prices.",
        rich_help_panel=_REVISIONS,
    ),
]
Limit = Annotated[
    float,
    typer.Option(
        "--limit",
        parser=_points,
        metavar="PERCENT",
        help="By how many percentage points the share may fall.",
        show_default="2%",
        rich_help_panel=_VERDICT,
    ),
]
MinTokens = Annotated[
    int,
    typer.Option(
        "--min-tokens", min=0, help="A loss of fewer tokens than this never fails.", rich_help_panel=_VERDICT
    ),
]
FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How to show it.", rich_help_panel="Output")
]
Summary = Annotated[
    Path | None,
    typer.Option(
        "--summary",
        help="Append a summary in Markdown to this file, for a pull request.",
        dir_okay=False,
        rich_help_panel="Output",
    ),
]


def gate_command(
    paths: Paths = None,
    *,
    base: Base = None,
    head: Head = "HEAD",
    repo: Repo = Path(),
    context: ContextFile = None,
    request_model: RequestModel = "",
    limit: Limit = "2%",  # type: ignore[assignment]  # Typer parses defaults as well
    min_tokens: MinTokens = 0,
    model: Model = None,
    tokenizer: TokenizerFile = None,
    template: TemplateFile = None,
    home: Home = None,
    profile: ProfileName = None,
    profiles_dir: ProfilesDir = None,
    form: FormatOption = Format.TERMINAL,
    summary: Summary = None,
    redact: Redact = False,
) -> None:
    """Fail if a change to prompts lowers the share of prompt tokens that can be cached.

    It is what a cache that keeps everything would have reused over the requests, by the profile's rules.
    """
    with trouble_told():
        book = load_profiles(profiles_dir)
        bench = Bench(text_model(home, model, tokenizer, template), book, profile, SystemClock().wall())
        limits = Limits(limit, min_tokens)
        if base is not None:
            contexts = read_contexts(context) if context is not None else ()
            wanted = Wanted(base, head, tuple(paths or ()), contexts, request_model)
            gate = compare_revisions(bench, Repository(repo), wanted, limits)
        else:
            before, after = _logs(paths)
            gate = compare_logs(
                bench, (str(before), read_requests(before)), (str(after), read_requests(after)), limits
            )
        gate = gate.redacted() if redact else gate
        _show(gate, form, os.environ)
        if summary is not None:
            _append(summary, markdown(gate))
        raise typer.Exit(0 if gate.is_passed else 1)


def _logs(paths: list[str] | None) -> tuple[Path, Path]:
    found = [Path(path) for path in paths or ()]
    if len(found) != 2:
        raise typer.BadParameter("Name two logs, before and after; or two revisions with --base.")
    for path in found:
        if not path.is_file():
            raise typer.BadParameter(f"{path} is no file. To compare revisions, name one with --base.")
    return found[0], found[1]


def _show(gate: Gate, form: Format, env: Mapping[str, str]) -> None:
    match form:
        case Format.JSON:
            sys.stdout.write(orjson.dumps(gate_facts(gate), option=orjson.OPT_INDENT_2).decode() + "\n")
        case Format.GITHUB:
            for line in github_commands(gate):
                sys.stdout.write(f"{line}\n")
            if env.get(_STEP_SUMMARY):
                _append(Path(env[_STEP_SUMMARY]), markdown(gate))
        case Format.TERMINAL:
            show_gate(gate, wide_console())


def _append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as stream:
        stream.write(text)
