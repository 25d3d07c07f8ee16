"""`hotprefix lint`: what keeps prompts from being cached, in requests and in the programs that build them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from enum import StrEnum
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hotprefix.app.doctor_options import (
    TROUBLE,
    Home,
    Model,
    OutputFile,
    ProfilesDir,
    TemplateFile,
    TokenizerFile,
    text_model,
    trouble_told,
    wide_console,
)
from hotprefix.base.errors import HotprefixError
from hotprefix.doctor.lint.fixing import FixedFile, fixed, write
from hotprefix.doctor.lint.measure import RulerBook
from hotprefix.doctor.lint.report.machine import github_lines, json_report
from hotprefix.doctor.lint.report.sarif import sarif_report
from hotprefix.doctor.lint.report.terminal import show
from hotprefix.doctor.lint.rule import Language, rules
from hotprefix.doctor.lint.run import SUFFIXES, Linter, LintReport, files_in
from hotprefix.doctor.lint.settings import (
    ARTICLES,
    ARTICLES_RULES,
    AUTO,
    FailOn,
    LintSettings,
    make_settings,
    named,
    read_settings,
    settings_in,
)
from hotprefix.doctor.lint.vendors import Vendors
from hotprefix.doctor.text_model import open_text_model
from hotprefix.models.store import open_store
from hotprefix.profiles.loader import ProfileBook, load_profiles
from hotprefix.profiles.profile import Profile

LINT_EPILOG = """
[bold]What it reads[/]

Python programs that call openai, anthropic, dashscope, litellm, httpx, requests or LangChain (read, never
run); Jinja templates; requests in JSON, JSONL and YAML for OpenAI Chat, the Responses API, DashScope and
Anthropic. The requests of one file are compared as well: what was seen to change is told as such, what only
looks as if it might is a warning.

[bold]Examples[/]

hotprefix lint src prompts

hotprefix lint requests.jsonl --tokenizer tokenizer.json

hotprefix lint app.py --profile dashscope-articles --lang zh

hotprefix lint . --diff

hotprefix lint . --format sarif --output lint.sarif

[bold]Not here[/]

A comment [cyan]# hotprefix: ignore\\[HP101][/] on the line, or
[cyan]\\[tool.hotprefix.lint][/] in pyproject.toml.

[bold]Exit codes[/]

0 nothing at or above --fail-on · 1 something · 2 a file or an option could not be read
"""

_FOUND = 1
_WIDE = 120
_RULES, _OUTPUT, _CHANGES = "Rules", "Output", "Changes"


class Format(StrEnum):
    """How findings are written."""

    TERMINAL = "terminal"
    JSON = "json"
    SARIF = "sarif"
    GITHUB = "github"


Files = Annotated[
    list[Path] | None,
    typer.Argument(help="Files and folders. Default: the current folder.", show_default=False),
]
LintProfile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help=f"{AUTO}: each request by its vendor's newest rules; {ARTICLES}: the DashScope articles' "
        "checklist; or a vendor profile, such as dashscope-2026-03.",
        show_default=AUTO,
        rich_help_panel=_RULES,
    ),
]
Select = Annotated[
    list[str] | None,
    typer.Option(
        "--select", help="Only these rules: HP101, volatile-time, HP1 for all that begin so. Repeatable."
    ),
]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", help="Not these rules. Repeatable.", rich_help_panel=_RULES)
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", help="Not these files: a pattern such as 'old/*'. Repeatable.", rich_help_panel=_RULES
    ),
]
ApplyFix = Annotated[
    bool, typer.Option("--fix", help="Rewrite what is safe to rewrite.", rich_help_panel=_CHANGES)
]
ShowDiff = Annotated[
    bool,
    typer.Option(
        "--diff", help="Show what --fix would change, and change nothing.", rich_help_panel=_CHANGES
    ),
]
OutputFormat = Annotated[
    Format, typer.Option("--format", "-f", help="How findings are written.", rich_help_panel=_OUTPUT)
]
FailOnLevel = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 from this severity on.",
        show_default=FailOn.WARNING.value,
        rich_help_panel=_OUTPUT,
    ),
]
Lang = Annotated[
    Language | None,
    typer.Option(
        "--lang", help="Of messages and advice.", show_default=Language.ENGLISH.value, rich_help_panel=_OUTPUT
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        help="A pyproject.toml with \\[tool.hotprefix.lint]. Default: the nearest one above.",
        exists=True,
        dir_okay=False,
        rich_help_panel=_RULES,
    ),
]
ListRules = Annotated[bool, typer.Option("--rules", help="List all rules and stop.", rich_help_panel=_RULES)]


def lint_command(
    *,
    files: Files = None,
    profile: LintProfile = None,
    profiles_dir: ProfilesDir = None,
    select: Select = None,
    ignore: Ignore = None,
    exclude: Exclude = None,
    config: Config = None,
    model: Model = None,
    tokenizer: TokenizerFile = None,
    template: TemplateFile = None,
    home: Home = None,
    fix: ApplyFix = False,
    diff: ShowDiff = False,
    output_format: OutputFormat = Format.TERMINAL,
    output: OutputFile = None,
    fail_on: FailOnLevel = None,
    lang: Lang = None,
    list_rules: ListRules = False,
) -> None:
    """Find what keeps prompts from being cached, without a server, a key or a network."""
    with trouble_told():
        table = settings_in(config) if config is not None else read_settings(Path.cwd())
        options: dict[str, Any] = {
            "profile": profile, "model": model, "tokenizer": tokenizer, "template": template, "lang": lang,
            "select": named(select), "ignore": named(ignore), "exclude": named(exclude), "fail_on": fail_on,
        }  # fmt: skip
        settings = make_settings(table, options)
        if list_rules:
            _list_rules(settings, output_format)
            return
        paths = _existing(files or [Path()])
        linter = _linter(settings, profiles_dir, home)
        if fix or diff:
            changed = _fix(linter, paths, settings, writes=not diff)
            if diff:
                raise typer.Exit(_FOUND if changed else 0)
        report = linter.check(paths)
        _write(report, settings, output_format, output)
    if not report.is_complete:
        raise typer.Exit(TROUBLE)
    if report.fails(settings.fail_on.severity):
        raise typer.Exit(_FOUND)


def _existing(paths: Sequence[Path]) -> Sequence[Path]:
    for path in paths:
        if not path.exists():
            raise HotprefixError(f"There is no file {path}.")
        if path.is_file() and path.suffix.lower() not in SUFFIXES:
            raise HotprefixError(f"{path} is of no known kind. Kinds: {', '.join(SUFFIXES)}.")
    return paths


def _linter(settings: LintSettings, profiles_dir: Path | None, home: Path | None) -> Linter:
    book = load_profiles(profiles_dir)
    forced = None
    if settings.profile != AUTO:
        forced = (
            book.get(ARTICLES_RULES) if settings.is_checklist else _vendor_profile(book, settings.profile)
        )
    chosen = text_model(home, settings.model, settings.tokenizer, settings.template)
    store = open_store(os.environ, root=home)
    ready = {stored.manifest.name for stored in store.list()}
    rulers = RulerBook(chosen, lambda name: open_text_model(store, name) if name in ready else None)
    return Linter(settings, Vendors(book, forced, settings.explicit_models), rulers)


def _vendor_profile(book: ProfileBook, name: str) -> Profile:
    if name not in book.names():
        known = ", ".join((AUTO, ARTICLES, *book.names()))
        raise HotprefixError(f"There is no profile {name!r}. Choose one of: {known}.")
    return book.get(name)


def _fix(linter: Linter, paths: Sequence[Path], settings: LintSettings, *, writes: bool) -> int:
    """Fix or show; how many files that concerns."""
    changed: list[FixedFile] = []
    for path in files_in(paths, settings):
        report = linter.check_file(path)
        if not report.is_readable or not any(finding.fix is not None for finding in report.findings):
            continue
        made = fixed(path, lambda copy: linter.check_file(copy, known_as=path).findings)  # noqa: B023
        if made is None:
            continue
        changed.append(made)
        if writes:
            write(made)
        else:
            sys.stdout.write(made.diff)
    if writes and changed:
        count = sum(file.count for file in changed)
        told = f"Fixed {count:,} in {len(changed):,} files."
        Console(stderr=True).print(told, highlight=False)
    return len(changed)


def _write(report: LintReport, settings: LintSettings, form: Format, output: Path | None) -> None:
    text = _text(report, settings, form)
    if text is None:
        out = wide_console() if output is None else Console(file=StringIO(), width=_WIDE)
        show(report, out, settings.lang, with_checklist=settings.is_checklist)
        text = out.file.getvalue() if isinstance(out.file, StringIO) else ""
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text, encoding="utf-8")


def _text(report: LintReport, settings: LintSettings, form: Format) -> str | None:
    """What machines read; None for the form that people read."""
    match form:
        case Format.TERMINAL:
            return None
        case Format.GITHUB:
            return "".join(f"{line}\n" for line in github_lines(report, settings.lang))
        case Format.SARIF:
            facts = sarif_report(report, settings.lang, Path.cwd())
        case Format.JSON:
            facts = json_report(report, settings.lang, with_checklist=settings.is_checklist)
    return json.dumps(facts, ensure_ascii=False, indent=2) + "\n"


def _list_rules(settings: LintSettings, form: Format) -> None:
    language = settings.lang
    if form is Format.JSON:
        facts = [
            {"id": rule.id, "name": rule.name, "severity": rule.severity.value,
             "question": rule.question.value, "step": rule.step, "advice": rule.advice({}, language)}
            for rule in rules().values()
        ]  # fmt: skip
        sys.stdout.write(json.dumps(facts, ensure_ascii=False, indent=2) + "\n")
        return
    table = Table("Rule", "Name", "Severity", "What to do", title="hotprefix lint")
    for rule in rules().values():
        table.add_row(rule.id, rule.name, rule.severity.value, Text(rule.advice({}, language)))
    Console().print(table)
