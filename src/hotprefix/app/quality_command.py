"""`hotprefix quality`: what codecs and precisions cost in the quality of predictions."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from hotprefix.app.measuring import bar_on, library_for, this_command
from hotprefix.app.model_commands import user_store
from hotprefix.base.clock import SystemClock
from hotprefix.base.errors import InvalidRequest, MissingExtra
from hotprefix.bench.environment import read_environment
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.manifest import ModelManifest
from hotprefix.models.store import default_root
from hotprefix.pages.codecs.calibration import Calibration
from hotprefix.pages.codecs.calibrations import calibration_path, find_calibration
from hotprefix.quality.card import Card, verdicts_of
from hotprefix.quality.run import CODECS, PRECISIONS, QUICK, QualityRun, QualitySizes, Source, Wishes
from hotprefix.quality.table import show

QUALITY_EPILOG = """
[bold]Examples[/]

Everything, for the default model:
[cyan]hotprefix quality[/]

A first look in a minute:
[cyan]hotprefix quality --quick[/]

Only some codecs, with your own texts and model:
[cyan]hotprefix quality --model ./model.gguf --text handbook.txt --codec int8 --codec mixed:5[/]

[bold]How to read it[/]

[bold]KL[/] compares the distribution of the next token with that of the uncompressed run, in nats: 0 is
equal, below 1e-3 is hard to notice, and the tail (p99.9) shows the worst tokens that a mean hides.
[bold]same top[/] is how often both would say the same next token. [bold]perplexity[/] is the change in how
well the text is predicted. [bold]needles[/] are facts hidden in a text that are still found.

Figures are taken in 32-bit arithmetic, so that they are the codec's doing alone. A server computes with 16
and 8 bits, where any change of a last bit moves predictions: the group "as served" shows by how much.
"""


def quality_command(
    *,
    model: Annotated[str, typer.Option("--model", "-m", help="Name or path of the model.")] = DEFAULT_MODEL,
    codec: Annotated[
        list[str] | None,
        typer.Option("--codec", help=f"A codec; repeatable. Default: {', '.join(CODECS)}."),
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(
            "--precision",
            help=f"A precision of the arena; repeatable, or none. Default: {', '.join(PRECISIONS)}.",
        ),
    ] = None,
    served: Annotated[bool, typer.Option(help="Measure also in the arithmetic of a server.")] = True,
    text: Annotated[
        list[Path] | None,
        typer.Option("--text", help="UTF-8 text to measure with; repeatable. Its second half is used."),
    ] = None,
    calibration: Annotated[
        Path | None, typer.Option("--calibration", help="File of 'hotprefix calibrate' for mixed.")
    ] = None,
    documents: Annotated[int, typer.Option("--documents", help="Documents to measure with.", min=1)] = 8,
    prefix: Annotated[int, typer.Option("--prefix", help="Tokens prefilled of each.", min=64)] = 1024,
    scored: Annotated[int, typer.Option("--scored", help="Tokens predicted behind them.", min=2)] = 384,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path("quality"),
    plots: Annotated[bool, typer.Option(help="Write an HTML page with plots.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="Two short documents; targets stay open.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a target is missed.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", help="Default: all cores.", min=1)] = None,
    home: Annotated[Path | None, typer.Option("--home", help="Where models are kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
) -> None:
    """Measure what codecs and precisions of the cache cost in the quality of predictions.

    Prefills texts once, does to the cache what a store would do, goes on from there and compares every
    prediction with the uncompressed run. Results go to the terminal and, as JSON and HTML, to a folder.
    """
    if plots:
        _require_plotly()
    manifest = user_store(home).resolve(model)
    library, tokenizer = library_for(manifest, text or ())
    sizes = QUICK if quick else QualitySizes(documents, prefix, scored)
    wishes = Wishes(
        codecs=tuple(dict.fromkeys(codec or CODECS)),
        precisions=() if precision == ["none"] else tuple(dict.fromkeys(precision or PRECISIONS)),
        is_served=served,
        calibration=_calibration(manifest, calibration, home or default_root(os.environ)),
        threads=threads,
    )
    console = Console(stderr=True)
    run = QualityRun(Source(manifest, library, tokenizer), sizes, wishes)
    is_whole = False
    try:
        with bar_on(console) as bar:
            run.run(bar)
        is_whole = True
    except ValueError as error:
        raise InvalidRequest(f"--codec: {error}.") from None
    except KeyboardInterrupt:
        console.print("[yellow]Stopped. What was measured is kept.[/]")
        raise typer.Exit(130) from None
    finally:
        if run.lines:
            card = _card(run, manifest, sizes, is_judged=is_whole and not quick)
            _write(card, out, plots=plots)
            if as_json:
                Console().print_json(orjson.dumps(card.to_json()).decode())
            else:
                show(card, Console())
                console.print(f"Written: {out}/", highlight=False)
    if check and any(verdict.is_met is False for verdict in card.verdicts):
        raise typer.Exit(1)


def _card(run: QualityRun, manifest: ModelManifest, sizes: QualitySizes, *, is_judged: bool) -> Card:
    environment = read_environment(SystemClock())
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
    )


def _calibration(manifest: ModelManifest, given: Path | None, home: Path) -> Calibration | None:
    own = calibration_path(home, manifest.fingerprint)
    return find_calibration(manifest, given or (own if own.is_file() else None))


def _write(card: Card, folder: Path, *, plots: bool) -> None:
    folder.mkdir(parents=True, exist_ok=True)
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
