"""`hotprefix calibrate`: learns which tokens and channels of a model deserve precision."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hotprefix.app.measuring import bar_on, library_for
from hotprefix.app.model_commands import user_store
from hotprefix.models.catalogue import DEFAULT_MODEL
from hotprefix.models.store import default_root
from hotprefix.pages.codecs.calibrations import calibration_path
from hotprefix.pages.codecs.experts import MIDDLE_BITS, OFFSETS
from hotprefix.quality.calibrate import QUICK, Calibrated, CalibrationSizes, calibrate
from hotprefix.quality.model import Setup

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
    home: Annotated[Path | None, typer.Option("--home", help="Where models are kept.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Learn which tokens and channels of a model deserve precision, for the codec `mixed`."""
    manifest = user_store(home).resolve(model)
    library, _ = library_for(manifest, text or ())
    sizes = QUICK if quick else CalibrationSizes(documents, tokens)
    path = out or calibration_path(home or default_root(os.environ), manifest.fingerprint)
    console = Console(stderr=True)
    try:
        with bar_on(console) as bar:
            found = calibrate(manifest, library, sizes, Setup(threads=threads), bar)
    except KeyboardInterrupt:
        console.print("[yellow]Stopped. Nothing was written.[/]")
        raise typer.Exit(130) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    found.calibration.save(path)
    _show(found, path, manifest.name, as_json=as_json)


def _show(found: Calibrated, path: Path, model: str, *, as_json: bool) -> None:
    out = Console()
    shares = found.calibration.shares.tolist()
    experts = {f"int{MIDDLE_BITS + offset}": share for offset, share in zip(OFFSETS, shares, strict=True)}
    keys, values = found.divergence
    if as_json:
        facts = {"path": str(path), "model": model, "bytes": path.stat().st_size, "shares": experts}
        out.print_json(data=facts | {"key_divergence": keys.tolist(), "value_divergence": values.tolist()})
        return
    parts = ", ".join(f"{name} {share:.0%}" for name, share in experts.items())
    for line in (
        f"Calibrated {model}: {path} ({path.stat().st_size:,} bytes)",
        f"Tokens by precision: {parts}.",
        f"Layer whose coarse keys are felt most: {int(keys.argmax())}; whose values: {int(values.argmax())}.",
        "Serve with it: hotprefix serve --kv-ram 4G --kv-codec mixed",
    ):
        out.print(line, highlight=False, markup=False, soft_wrap=True)
