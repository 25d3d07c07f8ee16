"""A run of `hotprefix quality`, from the model's name to the written card."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import orjson
import typer
from rich.console import Console

from hotprefix.app.measuring import bar_on, library_for, this_command
from hotprefix.app.model_commands import user_store
from hotprefix.app.state import CALIBRATION_FOLDER, default_state_dir
from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import MissingExtra
from hotprefix.bench.environment import read_environment
from hotprefix.models.manifest import ModelManifest
from hotprefix.pages.codecs.calibration import Calibration, load_calibration
from hotprefix.pages.codecs.calibrations import find_calibration
from hotprefix.quality.card import Card, verdicts_of
from hotprefix.quality.run import QualityRun, Source, Wishes
from hotprefix.quality.sizes import QualitySizes
from hotprefix.quality.table import show


@dataclass(frozen=True, slots=True)
class Request:
    """What the command line asks for."""

    model: str
    home: Path | None
    texts: tuple[Path, ...]
    sizes: QualitySizes
    codecs: tuple[str, ...]
    precisions: tuple[str, ...]
    strategies: tuple[str, ...]
    is_served: bool
    calibration: Path | None
    state_dir: Path | None
    threads: int | None
    out: Path
    plots: bool
    as_json: bool
    is_judged: bool


def measure(request: Request) -> Card:
    """Measure, show and write. What was found before an interruption or an error is kept."""
    if request.plots:
        _require_plotly()
    # What can't be written there is not measured first.
    request.out.mkdir(parents=True, exist_ok=True)
    manifest = user_store(request.home).resolve(request.model)
    library, tokenizer = library_for(manifest, request.texts)
    calibration = _calibration(manifest, request)
    wishes = Wishes(
        request.codecs,
        request.precisions,
        request.is_served,
        calibration,
        request.threads,
        request.strategies,
    )
    run = QualityRun(Source(manifest, library, tokenizer), request.sizes, wishes)
    console = Console(stderr=True)
    is_whole = False
    try:
        with bar_on(console) as bar:
            run.run(bar)
        is_whole = True
    except KeyboardInterrupt:
        kept = "What was measured until now is kept." if run.lines else "Nothing was measured yet."
        console.print(f"[yellow]Stopped. {kept}[/]")
        raise typer.Exit(130) from None
    finally:
        card = _card(run, manifest, request, is_judged=is_whole and request.is_judged)
        if run.lines:
            _tell(card, request, console)
    return card


def _card(run: QualityRun, manifest: ModelManifest, request: Request, *, is_judged: bool) -> Card:
    environment = read_environment(SystemClock())
    sizes = request.sizes
    return Card(
        model=manifest.name,
        command=this_command(),
        environment=environment.line().rpartition("; ")[0],
        date=environment.date,
        about=f"{sizes.documents} documents, {sizes.prefix:,} tokens prefilled, {sizes.scored} predicted",
        raw_bytes_per_token=run.raw_bytes_per_token,
        lines=tuple(run.lines),
        verdicts=verdicts_of(run.lines, is_judged),
        unsolved=run.unsolved,
        left_out=tuple(run.left_out),
    )


def _tell(card: Card, request: Request, console: Console) -> None:
    _write(card, request.out, plots=request.plots)
    if request.as_json:
        Console().print_json(orjson.dumps(card.to_json()).decode())
    else:
        show(card, Console())
        console.print(f"Written: {request.out}/", highlight=False)


def _calibration(manifest: ModelManifest, request: Request) -> Calibration | None:
    if request.calibration is not None:
        return load_calibration(request.calibration)
    state_dir = request.state_dir or default_state_dir(os.environ)
    return find_calibration(manifest, state_dir / CALIBRATION_FOLDER)


def _write(card: Card, folder: Path, *, plots: bool) -> None:
    (folder / "quality.json").write_bytes(orjson.dumps(card.to_json(), option=orjson.OPT_INDENT_2))
    if plots:
        from hotprefix.quality.plot import write_html

        write_html(card, folder / "quality.html")


def _require_plotly() -> None:
    try:
        import plotly  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            "Plots need the package 'plotly'. Install it with: pip install 'hotprefix[bench]' "
            "(or leave them out with --no-plots)."
        ) from error
