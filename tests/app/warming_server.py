"""A process with a scripted engine behind the real application. Its first line is its address; with
`--hold-after N` the Nth prefix and all later ones wait for SIGUSR1, and "holding" is said on stderr."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

from prometheus_client import CollectorRegistry
from rich.console import Console

from hotprefix.app.listen import bind, url_of
from hotprefix.app.logs import configure_logs
from hotprefix.app.serve import serve_engine
from hotprefix.app.settings import LogFormat, LogLevel, ServeSettings
from hotprefix.app.warm_file import read_warm_files
from hotprefix.engine.request import Delta, GenerationRequest
from hotprefix.profiles.loader import load_profiles
from hotprefix.prompt.builder import PromptBuilder
from tests.api.scripted_engine import ScriptedEngine


class HoldingEngine(ScriptedEngine):
    """Holds back its requests from the one with number `first` on."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first

    async def stream(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        if len(self.seen) >= self.first:
            self.hold_after = 0
            print("holding", file=sys.stderr, flush=True)
        async for delta in super().stream(request):
            yield delta

    def let_through(self) -> None:
        self.first = sys.maxsize
        self.release()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--hold-after", type=int, default=sys.maxsize)
    parser.add_argument("--warm", type=Path, action="append", default=[])
    parser.add_argument("--state", type=Path)
    parser.add_argument("--model", default="scripted")
    wanted = parser.parse_args()
    engine = HoldingEngine(wanted.hold_after)
    engine.model = replace(engine.model, fingerprint=wanted.model)
    signal.signal(signal.SIGUSR1, lambda *_: engine.let_through())
    settings = ServeSettings(
        port=0, drain_timeout=0.2, state_dir=wanted.state, warm=tuple(wanted.warm), log_level=LogLevel.ERROR
    )
    sock = bind(settings.host, settings.port)
    print(url_of(sock), flush=True)
    serve_engine(
        engine,
        PromptBuilder(engine.model.tokenizer, engine.model.template, limit=4095),
        CollectorRegistry(),
        settings,
        load_profiles(),
        sock,
        log=configure_logs(settings.log_level, LogFormat.JSON, sys.stderr),
        out=Console(),
        prefixes=read_warm_files(settings.warm),
        progress=Console(stderr=True),
    )


if __name__ == "__main__":
    main()
