"""The `hotprefix` command."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from hotprefix import __version__
from hotprefix.app.calibrate_command import CALIBRATE_EPILOG, calibrate_command
from hotprefix.app.explain_command import EXPLAIN_EPILOG, explain_command
from hotprefix.app.gate_command import GATE_EPILOG, gate_command
from hotprefix.app.keys_command import keys_app
from hotprefix.app.lint_command import LINT_EPILOG, lint_command
from hotprefix.app.model_commands import models_app
from hotprefix.app.plan_command import PLAN_EPILOG, plan_command
from hotprefix.app.prompts_judging import prompts_app
from hotprefix.app.quality_command import QUALITY_EPILOG, quality_command
from hotprefix.app.replay_command import REPLAY_EPILOG, replay_command
from hotprefix.app.report_command import REPORT_EPILOG, report_command
from hotprefix.app.serve_command import SERVE_EPILOG, serve_command
from hotprefix.app.tune_command import TUNE_EPILOG, tune_command
from hotprefix.app.usage_command import USAGE_EPILOG, usage_command
from hotprefix.app.warm_command import WARM_EPILOG, warm_command
from hotprefix.base.errors import HotprefixError

_EXTRA_COMMANDS = "hotprefix.bench.command"
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def build_app() -> typer.Typer:
    """All commands; `bench` is there if its room is installed."""
    app = typer.Typer(
        name="hotprefix",
        help="A context-cache server for large language models: a shared prompt prefix is computed once.",
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.command("serve", epilog=SERVE_EPILOG)(serve_command)
    app.add_typer(models_app, name="models")
    app.add_typer(keys_app, name="keys")
    app.command("usage", epilog=USAGE_EPILOG)(usage_command)
    app.command("warm", epilog=WARM_EPILOG)(warm_command)
    app.command("lint", epilog=LINT_EPILOG)(lint_command)
    app.command("tune", epilog=TUNE_EPILOG)(tune_command)
    app.command("explain", epilog=EXPLAIN_EPILOG)(explain_command)
    app.command("gate", epilog=GATE_EPILOG)(gate_command)
    app.command("report", epilog=REPORT_EPILOG)(report_command)
    app.command("replay", epilog=REPLAY_EPILOG)(replay_command)
    app.command("plan", epilog=PLAN_EPILOG)(plan_command)
    app.add_typer(prompts_app, name="prompts")
    app.command("quality", epilog=QUALITY_EPILOG)(quality_command)
    app.command("calibrate", epilog=CALIBRATE_EPILOG)(calibrate_command)
    app.command("version")(version_command)
    if importlib.util.find_spec("hotprefix.bench") and importlib.util.find_spec(_EXTRA_COMMANDS):
        app.add_typer(importlib.import_module(_EXTRA_COMMANDS).bench_app, name="bench")
    app.callback()(_common)
    return app


def _show_version(asked: bool) -> None:
    if asked:
        version_command()
        raise typer.Exit


def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, help="Show the version and exit.", is_eager=True),
    ] = False,
) -> None:
    """Options of `hotprefix` itself; Typer has read them when this runs."""


def version_command(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the version."""
    out = Console()
    if as_json:
        out.print_json(data={"version": __version__})
    else:
        out.print(f"hotprefix {__version__}", highlight=False)


def main() -> None:
    """Entry point: errors raised on purpose are told in one line, without a traceback."""
    try:
        build_app()()
    except HotprefixError as error:
        _tell(str(error))
        sys.exit(1)
    except OSError as error:
        # A disk that is full or read-only, a folder of somebody else's: no bug, and the path says enough.
        if error.filename is None and error.errno not in _DISK_ERRORS:
            raise
        place = f"{error.filename}: " if error.filename is not None else ""
        _tell(f"{place}{error.strerror}. Check the path, its permissions and the free space.")
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


def _tell(message: str) -> None:
    Console(stderr=True).print(f"[bold red]Error:[/] {escape(message)}", highlight=False, soft_wrap=True)
