"""A run of `hotprefix calibrate`, from the model's name to the written file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import typer
from rich.console import Console

from hotprefix.app.measuring import bar_on, library_for
from hotprefix.app.model_commands import user_store
from hotprefix.app.state import CALIBRATION_FOLDER, default_state_dir
from hotprefix.base.errors import HotprefixError
from hotprefix.pages.codecs.calibrations import calibration_path
from hotprefix.pages.codecs.experts import MIDDLE_BITS, OFFSETS
from hotprefix.quality.calibrate import Calibrated, calibrate
from hotprefix.quality.model import Setup
from hotprefix.quality.sizes import CalibrationSizes


class Request(NamedTuple):
    """What the command line asks for."""

    model: str
    home: Path | None
    texts: tuple[Path, ...]
    sizes: CalibrationSizes
    threads: int | None
    state_dir: Path | None
    out: Path | None
    as_json: bool


def learn(request: Request) -> None:
    """Calibrate, write and tell."""
    manifest = user_store(request.home).resolve(request.model)
    library, _ = library_for(manifest, request.texts)
    state_dir = request.state_dir or default_state_dir(os.environ)
    path = request.out or calibration_path(state_dir / CALIBRATION_FOLDER, manifest.fingerprint)
    if path.is_dir():
        raise HotprefixError(f"{path} is a folder; name a file with --out.")
    # What can't be written there is not learned first.
    path.parent.mkdir(parents=True, exist_ok=True)
    console = Console(stderr=True)
    try:
        with bar_on(console) as bar:
            found = calibrate(manifest, library, request.sizes, Setup(threads=request.threads), bar)
    except KeyboardInterrupt:
        console.print("[yellow]Stopped. Nothing was written.[/]")
        raise typer.Exit(130) from None
    found.calibration.save(path)
    _show(found, path, manifest.name, as_json=request.as_json)


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
