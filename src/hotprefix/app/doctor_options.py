"""Options that the doctor's commands share, and what becomes of errors where exit codes mean something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from hotprefix.base.errors import HotprefixError
from hotprefix.doctor.text_model import TextModel, open_text_model
from hotprefix.models.store import open_store

TROUBLE = 2
"""Exit code where a file, a model or a repository can't be read; the same as for a wrong option."""

_WIDE = 160
_PROMPTS, _RULES, _OUTPUT = "Prompts", "Rules", "Output"

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        help="A prepared model, a GGUF file or a folder with tokenizer.json, whose tokenizer and template "
        "are used. Without it token counts are estimates.",
        rich_help_panel=_PROMPTS,
    ),
]
TokenizerFile = Annotated[
    Path | None,
    typer.Option(
        "--tokenizer",
        help="A tokenizer.json, in place of the model's.",
        dir_okay=False,
        exists=True,
        rich_help_panel=_PROMPTS,
    ),
]
TemplateFile = Annotated[
    Path | None,
    typer.Option(
        "--template",
        help="A chat template in Jinja, or a tokenizer_config.json that has one, in place of the model's.",
        dir_okay=False,
        exists=True,
        rich_help_panel=_PROMPTS,
    ),
]
Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Where models are kept. Default: HOTPREFIX_HOME, else the user's cache folder.",
        file_okay=False,
        rich_help_panel=_PROMPTS,
    ),
]
ProfileName = Annotated[
    str | None,
    typer.Option(
        "--profile",
        help="Whose caching rules and prices hold. Default: the newest of the vendor that a request is for.",
        rich_help_panel=_RULES,
    ),
]
ProfilesDir = Annotated[
    Path | None,
    typer.Option("--profiles-dir", help="Folder with profile files of your own.", rich_help_panel=_RULES),
]
Redact = Annotated[
    bool,
    typer.Option(
        "--redact",
        help="Show no words of prompts, only how many characters there are.",
        rich_help_panel=_OUTPUT,
    ),
]
OutputFile = Annotated[
    Path | None,
    typer.Option("--output", "-o", help="Write to this file.", dir_okay=False, rich_help_panel=_OUTPUT),
]


def text_model(
    home: Path | None, model: str | None, tokenizer: Path | None, template: Path | None
) -> TextModel:
    """By what the options name; nothing is fetched."""
    return open_text_model(open_store(os.environ, root=home), model, tokenizer, template)


@contextmanager
def trouble_told() -> Iterator[None]:
    """Errors raised on purpose end the command with `TROUBLE`, so that they are no verdict."""
    try:
        yield
    except BrokenPipeError:
        raise  # whoever read this has seen enough
    except HotprefixError as error:
        _tell(str(error))
        raise typer.Exit(TROUBLE) from None
    except OSError as error:
        _tell(f"{error.filename or 'A file'}: {error.strerror or error}.")
        raise typer.Exit(TROUBLE) from None


def _tell(text: str) -> None:
    Console(stderr=True).print(f"[bold red]Error:[/] {escape(text)}", highlight=False, soft_wrap=True)


def wide_console() -> Console:
    """Standard output; a pipe has no width, so nothing is squeezed for it."""
    out = Console()
    return out if out.is_terminal else Console(width=_WIDE)
