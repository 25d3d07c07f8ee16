"""`hotprefix report`: what logs say of a cache."""

from __future__ import annotations

import sys
from datetime import datetime
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from hotprefix.app.collector import calm_collector
from hotprefix.app.doctor_options import (
    Home,
    Model,
    OutputFile,
    ProfileName,
    ProfilesDir,
    TemplateFile,
    TokenizerFile,
    text_model,
    trouble_told,
    wide_console,
)
from hotprefix.app.moments import since_option, unix_seconds, until_option
from hotprefix.base.clock import SystemClock
from hotprefix.doctor.reading import UnreadableFile
from hotprefix.doctor.report.figures import Dimension, Report
from hotprefix.doctor.report.wording import Language
from hotprefix.profiles.loader import load_profiles

REPORT_EPILOG = """
[bold]Examples[/]

hotprefix report ~/.local/state/hotprefix/ledger.sqlite3 --since 2026-11-01 --by scene --by reason

hotprefix report answers-*.jsonl.gz --format html --lang zh -o report.html

[bold]Exit codes[/]  0: done. 1: the hit rate is below --min-hit-rate. 2: a log can't be read.
"""

_CALLS, _OUTPUT, _PROMPTS = "Calls", "Output", "Prompts"
_BELOW = 1


class Format(StrEnum):
    """How a report is shown."""

    TERMINAL = "terminal"
    JSON = "json"
    HTML = "html"


Logs = Annotated[
    list[str],
    typer.Argument(
        metavar="LOG",
        help="Our ledger (SQLite file, postgresql://… URL, CSV or Parquet export), response logs of OpenAI, "
        "Anthropic or DashScope (JSON, JSONL, event streams), LiteLLM or OpenTelemetry; gzipped or not.",
        show_default=False,
    ),
]
Since = Annotated[datetime | None, since_option(_CALLS)]
Until = Annotated[datetime | None, until_option(_CALLS)]
Tenant = Annotated[
    list[str] | None,
    typer.Option("--tenant", help="Only this tenant; give it again for more.", rich_help_panel=_CALLS),
]
SceneName = Annotated[
    list[str] | None,
    typer.Option("--scene", help="Only this scene; give it again for more.", rich_help_panel=_CALLS),
]
By = Annotated[
    list[Dimension] | None,
    typer.Option(
        "--by",
        help="What sums are grouped by; give it again for more. Default: all that the logs tell.",
        rich_help_panel=_OUTPUT,
    ),
]
Top = Annotated[
    int, typer.Option("--top", min=1, max=1_000, help="Entries of every list.", rich_help_panel=_OUTPUT)
]
FormatOption = Annotated[
    Format, typer.Option("--format", "-f", help="How to show it.", rich_help_panel=_OUTPUT)
]
Lang = Annotated[
    Language,
    typer.Option("--lang", help="Of the terminal, and what the page shows first.", rich_help_panel=_OUTPUT),
]
Compare = Annotated[
    int,
    typer.Option(
        "--compare",
        min=0,
        help="How many requests in the logs are compared with earlier ones, the latest first; 0: none.",
        rich_help_panel=_PROMPTS,
    ),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact", help="Show no words of prompts: digests stand in their place.", rich_help_panel=_OUTPUT
    ),
]
MinHitRate = Annotated[
    float | None,
    typer.Option(
        "--min-hit-rate",
        min=0.0,
        max=1.0,
        help="Exit with 1 if fewer of the prompt tokens were read: 0.6 for 60 %.",
        rich_help_panel=_OUTPUT,
    ),
]


def report_command(
    logs: Logs,
    *,
    since: Since = None,
    until: Until = None,
    tenant: Tenant = None,
    scene: SceneName = None,
    by: By = None,
    top: Top = 10,
    form: FormatOption = Format.TERMINAL,
    output: OutputFile = None,
    lang: Lang = Language.EN,
    redact: Redact = False,
    min_hit_rate: MinHitRate = None,
    compare: Compare = 5_000,
    model: Model = None,
    tokenizer: TokenizerFile = None,
    template: TemplateFile = None,
    home: Home = None,
    profile: ProfileName = None,
    profiles_dir: ProfilesDir = None,
) -> None:
    """Show from logs what a cache gave and could have given: hit rates, times, money, reasons."""
    # Tables are only loaded by the commands that count.
    from hotprefix.doctor.report.make import Wishes, make_report
    from hotprefix.doctor.report.table import Choice

    with trouble_told():
        choice = Choice(unix_seconds(since), unix_seconds(until), tuple(tenant or ()), tuple(scene or ()))
        wishes = Wishes(
            choice=choice,
            by=tuple(dict.fromkeys(by or ())),
            top=top,
            profile=profile,
            compare=compare,
            redact=redact,
            texts=text_model(home, model, tokenizer, template),
        )
        with calm_collector():
            report = make_report(logs, load_profiles(profiles_dir), wishes, SystemClock().wall())
        if not report.total.requests:
            raise UnreadableFile(_nothing(report))
        _write(_text(report, form, lang, output), output)
        rate = report.total.hit_rate
        if min_hit_rate is not None and (rate is None or rate < min_hit_rate):
            shown = "not reported" if rate is None else f"{rate:.1%}"
            told = f"The hit rate is {shown}, below {min_hit_rate:.1%}."
            Console(stderr=True).print(told, style="red", highlight=False)
            raise typer.Exit(_BELOW)


def _nothing(report: Report) -> str:
    from hotprefix.doctor.report.wording import note_told

    told = " ".join(note_told(note, Language.EN) for note in report.notes)
    return f"There is no call to count in {', '.join(report.files)}. {told}".rstrip()


def _text(report: Report, form: Format, lang: Language, output: Path | None) -> str:
    match form:
        case Format.JSON:
            from hotprefix.doctor.report.facts import report_facts

            return orjson.dumps(report_facts(report), option=orjson.OPT_INDENT_2).decode() + "\n"
        case Format.HTML:
            from hotprefix.doctor.report.page import report_page

            return report_page(report, lang)
        case Format.TERMINAL:
            from hotprefix.doctor.report.terminal import TerminalReport

            if output is None:
                TerminalReport(wide_console(), lang).show(report)
                return ""
            text = StringIO()
            TerminalReport(Console(width=160, file=text), lang).show(report)
            return text.getvalue()


def _write(text: str, output: Path | None) -> None:
    if output is not None:
        output.write_text(text, encoding="utf-8")
        Console(stderr=True).print(f"Wrote {output}.", highlight=False, soft_wrap=True, markup=False)
    elif text:
        sys.stdout.write(text)
