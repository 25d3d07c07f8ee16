"""`hotprefix prompts compare` and `review`: what logs and calendars say of prompts."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from hotprefix.app.doctor_options import (
    TROUBLE,
    Home,
    Model,
    ProfileName,
    ProfilesDir,
    TokenizerFile,
    text_model,
    trouble_told,
    wide_console,
)
from hotprefix.app.moments import since_option, unix_seconds, until_option
from hotprefix.app.prompts_command import (
    FOLDER,
    AsJson,
    Folder,
    Name,
    parse_weights,
    print_json,
    prompts_app,
    tell,
    today,
)
from hotprefix.app.prompts_tables import show_review
from hotprefix.base.errors import MissingExtra
from hotprefix.doctor.prompts.edit import RegistryEditor
from hotprefix.doctor.prompts.prompt import Prompt
from hotprefix.doctor.prompts.registry import open_registry
from hotprefix.doctor.prompts.sizes import Sizes
from hotprefix.profiles.loader import load_profiles

__all__ = ["prompts_app"]
"""With the commands of this file, which belong to it."""

COMPARE_EPILOG = """
[bold]Examples[/]

hotprefix prompts compare greeting ledger.sqlite3 --scores ratings.csv --html greeting.html

hotprefix prompts compare greeting calls.jsonl --weights v1=50,v2=50 --unit tenant

[bold]Exit codes[/]  0: compared, and no arm is worse. 1: an arm is worse in something. 2: it can't be told.
"""
REVIEW_EPILOG = """
[bold]Examples[/]

hotprefix prompts review ledger.sqlite3 --every 90 --markdown review.md

hotprefix prompts review --done greeting@v2

[bold]Exit codes[/]  0: shown. 1: with --check, something is due. 2: it could not be told.
"""
_FOUND = 1


class SplitBy(StrEnum):
    """What kept its version over several requests."""

    AUTO = "auto"
    SESSION = "session"
    TENANT = "tenant"
    REQUEST = "request"


class ScoreIs(StrEnum):
    """Which scores are good."""

    HIGHER = "higher"
    LOWER = "lower"


Logs = Annotated[
    list[str], typer.Argument(help="Logs of any kind that 'hotprefix report' reads, or postgresql:// URLs.")
]
SomeLogs = Annotated[
    list[str] | None, typer.Argument(help="Logs; without them, only what files and dates say.")
]


@prompts_app.command("compare", epilog=COMPARE_EPILOG)
def compare_command(
    name: Name,
    logs: Logs,
    *,
    folder: Folder = FOLDER,
    scores: Annotated[
        Path | None,
        typer.Option(
            "--scores", help="Table with request_id or session, and score.", exists=True, dir_okay=False
        ),
    ] = None,
    score_column: Annotated[str, typer.Option("--score-column", help="Its column.")] = "score",
    score_is: Annotated[ScoreIs, typer.Option("--better", help="Which scores are good.")] = ScoreIs.HIGHER,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights", help="Arms and weights, control first. Default: the experiment in prompts.toml."
        ),
    ] = None,
    unit: Annotated[SplitBy, typer.Option("--unit", help="What was split.")] = SplitBy.AUTO,
    alpha: Annotated[
        float, typer.Option("--alpha", min=1e-4, max=0.5, help="Error allowed over all tests.")
    ] = 0.05,
    fewest: Annotated[int, typer.Option("--fewest", min=10, help="Least units of an arm to judge.")] = 30,
    since: Annotated[datetime | None, since_option()] = None,
    until: Annotated[datetime | None, until_option()] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page with plots.", dir_okay=False)
    ] = None,
    as_json: AsJson = False,
    profile: ProfileName = None,
    profiles_dir: ProfilesDir = None,
) -> None:
    """Compare versions of a prompt by time to first token, hit rate, cost, errors and a score of yours."""
    with trouble_told():
        _require_scipy()
        from hotprefix.app.prompts_tables import show_comparison
        from hotprefix.doctor.prompts.experiment.document import comparison_facts
        from hotprefix.doctor.prompts.experiment.judge import Design, Rules, compare
        from hotprefix.doctor.prompts.experiment.log import Unit, all_calls, prompt_calls, read_scores
        from hotprefix.doctor.prompts.experiment.metric import Better
        from hotprefix.doctor.prompts.experiment.plot import require_plotly, write_page
        from hotprefix.doctor.report.table import Choice

        if html is not None:
            require_plotly()
        given = None if scores is None else read_scores(scores, score_column)
        every = all_calls(
            logs, load_profiles(profiles_dir), Choice(unix_seconds(since), unix_seconds(until)), profile
        )
        calls = prompt_calls(every, name, Unit(unit.value), given)
        found_weights = parse_weights(weights) if weights is not None else _weights(folder, name)
        arms = tuple(found_weights or sorted(calls.table["prompt_version"].unique().to_list()))
        design = Design(name, arms, found_weights, calls.unit.value)
        found = compare(calls.table, design, Rules(alpha, fewest, score=Better(score_is.value)))
        if as_json:
            print_json(comparison_facts(found))
        else:
            show_comparison(found, wide_console())
        if html is not None:
            write_page(found, calls.table, html)
            tell(f"Wrote {html}.")
    raise typer.Exit(_FOUND if found.is_worse else 0 if found.is_judged else TROUBLE)


@prompts_app.command("review", epilog=REVIEW_EPILOG)
def review_command(
    logs: SomeLogs = None,
    *,
    folder: Folder = FOLDER,
    every: Annotated[int, typer.Option("--every", min=1, help="Days after which a prompt is due.")] = 90,
    fall: Annotated[
        float, typer.Option("--fall", min=0, max=1, help="Fall of a hit rate that is told.")
    ] = 0.1,
    recent: Annotated[
        int, typer.Option("--recent", min=1, help="Days whose hit rate is held against before.")
    ] = 30,
    done: Annotated[
        list[str] | None, typer.Option("--done", help="Note NAME@VERSION as reviewed today. Repeatable.")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if something is due.")] = False,
    markdown: Annotated[Path | None, typer.Option("--markdown", help="Write a list to tick off.")] = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Write a table.")] = None,
    as_json: AsJson = False,
    no_lint: Annotated[bool, typer.Option("--no-lint", help="Leave the linter out.")] = False,
    home: Home = None,
    model: Model = None,
    tokenizer: TokenizerFile = None,
    profiles_dir: ProfilesDir = None,
) -> None:
    """List the prompts that somebody should look at: old, unused, too short, or less often in the cache."""
    with trouble_told():
        from hotprefix.doctor.prompts.experiment.log import all_calls
        from hotprefix.doctor.prompts.review.linting import PromptLint
        from hotprefix.doctor.prompts.review.review import Reviewer, ReviewRules
        from hotprefix.doctor.prompts.review.usage import uses_of
        from hotprefix.doctor.prompts.review.writing import review_csv, review_facts, review_markdown
        from hotprefix.doctor.report.table import Choice

        if done:
            for label in done:
                version = RegistryEditor(folder).reviewed(label, today())
                tell(f"{version.label} is reviewed: {version.reviewed}.")
            return
        book = load_profiles(profiles_dir)
        found = Reviewer(
            open_registry(folder),
            book,
            today(),
            ReviewRules(every, fall),
            Sizes(text_model(home, model, tokenizer, None)),
            uses_of(all_calls(logs, book, Choice()), recent) if logs else None,
            None if no_lint else PromptLint(book),
        ).review()
    if markdown is not None:
        markdown.write_text(review_markdown(found), encoding="utf-8")
    if table is not None:
        table.write_text(review_csv(found), encoding="utf-8")
    if as_json:
        print_json(review_facts(found))
    else:
        show_review(found, wide_console())
    raise typer.Exit(_FOUND if check and found.items else 0)


def _weights(folder: Path, name: str) -> dict[str, float] | None:
    """Of the experiment in the registry; None if there is no registry or no experiment."""
    if not folder.is_dir():
        return None
    found: Prompt | None = open_registry(folder).prompts.get(name)
    return dict(found.experiment.arms) if found is not None and found.experiment is not None else None


def _require_scipy() -> None:
    try:
        import scipy  # noqa: F401
    except ImportError:
        raise MissingExtra("Comparing prompts needs scipy: pip install 'hotprefix[ab]'.") from None
