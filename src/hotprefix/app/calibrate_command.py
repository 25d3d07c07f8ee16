"""`hotprefix calibrate`: learns which tokens and channels of a model deserve precision."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.quality.sizes import QUICK_CALIBRATION, CalibrationSizes

CALIBRATE_EPILOG = """
[bold]Examples[/]

For the default model, from texts that come with Python:
[cyan]hotprefix calibrate[/]

For your own model, from what your prompts look like, and then serve with it:
[cyan]hotprefix calibrate --model ./qwen2.5-0.5b.gguf --text handbook.txt --text tickets.txt[/]
[cyan]hotprefix serve --model ./qwen2.5-0.5b.gguf --kv-ram 4G --kv-codec mixed[/]

See what it is worth:
[cyan]hotprefix quality --codec int8 --codec int4 --codec mixed[/]

[bold]What it does[/]

Runs documents through the model in 32-bit arithmetic, sees which cached tokens later ones look at and how
far an error there would be felt, and fits one linear function for each layer and head that tells such
tokens by their key and value. Then it makes each layer coarse in turn, and measures how much the predictions
change. The file also serves sequence strategies as a scorer: [cyan]--kv-scorer FILE[/].
"""


def calibrate_command(
    *,
    model: Annotated[str, typer.Option("--model", "-m", help="Name or path of the model.")] = DEFAULT_MODEL,
    text: Annotated[
        list[Path] | None,
        typer.Option("--text", help="UTF-8 text to learn from; repeatable. Its first half is used."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write. Default: where 'hotprefix serve' finds it."),
    ] = None,
    documents: Annotated[int, typer.Option("--documents", help="Documents to observe.", min=2)] = 24,
    tokens: Annotated[int, typer.Option("--tokens", help="Tokens of each.", min=256)] = 1024,
    quick: Annotated[
        bool, typer.Option("--quick", help="Four documents of 512 tokens: a try, worth less.")
    ] = False,
    threads: Annotated[int | None, typer.Option("--threads", help="Default: all cores.", min=1)] = None,
    state_dir: Annotated[
        Path | None,
        typer.Option("--state-dir", help="The server's state folder. Default: ~/.local/state/hotprefix."),
    ] = None,
    home: Annotated[Path | None, typer.Option("--home", help="Where models are kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Learn which tokens and channels of a model deserve precision, for the codec `mixed`."""
    # The libraries behind it take a second to load: not for --help.
    from hotprefix.app.calibrate_work import Request, learn

    sizes = CalibrationSizes(documents, tokens)
    if quick and sizes != CalibrationSizes():
        raise typer.BadParameter(
            "it has sizes of its own: leave --documents and --tokens out", param_hint="--quick"
        )
    sizes = QUICK_CALIBRATION if quick else sizes
    learn(Request(model, home, tuple(text or ()), sizes, threads, state_dir, out, as_json))
