"""A process whose engine takes until SIGUSR1 to load. Its first line is its address."""

from __future__ import annotations

import signal
import sys
import threading
from contextlib import closing

from prometheus_client import CollectorRegistry
from rich.console import Console

from hotprefix.app.listen import bind, url_of
from hotprefix.app.logs import configure_logs
from hotprefix.app.serve import serve_engine
from hotprefix.app.settings import LogFormat, LogLevel, ServeSettings
from hotprefix.app.waiting_room import WaitingRoom
from hotprefix.profiles.loader import load_profiles
from hotprefix.prompt.builder import PromptBuilder
from tests.api.scripted_engine import ScriptedEngine


def main() -> None:
    loaded = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: loaded.set())
    engine, settings = ScriptedEngine(), ServeSettings(port=0, drain_timeout=0.2)
    log = configure_logs(LogLevel.ERROR, LogFormat.JSON, sys.stderr)
    prompts = PromptBuilder(engine.model.tokenizer, engine.model.template, limit=4095)
    with closing(bind(settings.host, settings.port)) as sock, WaitingRoom(sock) as waiting:
        print(url_of(sock), flush=True)
        loaded.wait()
        waiting.close()
        registry, profiles = CollectorRegistry(), load_profiles()
        serve_engine(engine, prompts, registry, settings, profiles, sock, log=log, out=Console())


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
