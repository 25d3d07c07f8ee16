"""`hotprefix quality`: what codecs, precisions and strategies cost in the quality of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotprefix.app.settings import KvPrecision
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.quality.sizes import CODECS, PRECISIONS, QUICK_QUALITY, STRATEGIES, QualitySizes

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


def _chosen(asked: list[str] | None, default: tuple[str, ...]) -> tuple[str, ...]:
    """What was asked for, each once; nothing for the word `none`."""
    return () if asked == ["none"] else tuple(dict.fromkeys(asked or default))


def _sizes(asked: QualitySizes, *, quick: bool) -> QualitySizes:
    if quick and asked != QualitySizes():
        raise typer.BadParameter(
            "it has sizes of its own: leave --documents, --prefix and --scored out", param_hint="--quick"
        )
    return QUICK_QUALITY if quick else asked


def _precisions(asked: list[str] | None) -> tuple[str, ...]:
    chosen = _chosen(asked, PRECISIONS)
    known = [precision.value for precision in KvPrecision]
    for name in chosen:
        if name not in known:
            raise typer.BadParameter(
                f"{name!r} is none of {', '.join(known)}, none", param_hint="--precision"
            )
    return chosen


def quality_command(
    *,
    model: Annotated[str, typer.Option("--model", "-m", help="Name or path of the model.")] = DEFAULT_MODEL,
    codec: Annotated[
        list[str] | None,
        typer.Option("--codec", help=f"A codec; repeatable, or none. Default: {', '.join(CODECS)}."),
    ] = None,
    precision: Annotated[
        list[str] | None,
        typer.Option(
            "--precision",
            help=f"A precision of the arena; repeatable, or none. Default: {', '.join(PRECISIONS)}.",
        ),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            help="A sequence strategy as a request asks for it ('window; window=512'); repeatable, or none. "
            f"Default: {', '.join(STRATEGIES)}, with half of the prefix as window.",
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
    prefix: Annotated[int, typer.Option("--prefix", help="Tokens prefilled of each.", min=64)] = 1536,
    scored: Annotated[int, typer.Option("--scored", help="Tokens predicted behind them.", min=2)] = 384,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for results.")] = Path("quality"),
    plots: Annotated[bool, typer.Option(help="Write an HTML page with plots.")] = True,
    quick: Annotated[bool, typer.Option("--quick", help="Two short documents; targets stay open.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a target is missed.")] = False,
    threads: Annotated[int | None, typer.Option("--threads", help="Default: all cores.", min=1)] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option("--state-dir", help="The server's state folder. Default: ~/.local/state/hotprefix."),
    ] = None,
    home: Annotated[Path | None, typer.Option("--home", help="Where models are kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the card as JSON.")] = False,
) -> None:
    """Measure what codecs, precisions and strategies of the cache cost in the quality of predictions.

    Prefills texts once, does to the cache what a store or a strategy would do, goes on from there and
    compares every prediction with the untreated run. Results go to the terminal and, as JSON and HTML,
    to a folder.
    """
    # The libraries behind it take a second to load: not for --help.
    from hotprefix.app.quality_work import Request, measure

    request = Request(
        model=model,
        home=home,
        texts=tuple(text or ()),
        sizes=_sizes(QualitySizes(documents, prefix, scored), quick=quick),
        codecs=_chosen(codec, CODECS),
        precisions=_precisions(precision),
        strategies=_chosen(strategy, STRATEGIES),
        is_served=served,
        calibration=calibration,
        state_dir=state_dir,
        threads=threads,
        out=out,
        plots=plots,
        as_json=as_json,
        is_judged=not quick,
    )
    card = measure(request)
    if check and any(verdict.is_met is False for verdict in card.verdicts):
        raise typer.Exit(1)
