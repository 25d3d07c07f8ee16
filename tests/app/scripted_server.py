"""A process that serves a scripted engine as `hotprefix serve` serves a real one.

Its argument is the drain timeout in seconds.
"""

from __future__ import annotations

import sys

from prometheus_client import CollectorRegistry
from rich.console import Console

from hotprefix.app.listen import bind
from hotprefix.app.logs import configure_logs
from hotprefix.app.serve import serve_engine
from hotprefix.app.settings import LogFormat, LogLevel, ServeSettings
from hotprefix.profiles.loader import load_profiles
from hotprefix.prompt.builder import PromptBuilder
from tests.api.scripted_engine import ScriptedEngine


def main() -> None:
    engine = ScriptedEngine(lambda prompt: "word " * 3)
    engine.hold_after = 3
    settings = ServeSettings(port=0, drain_timeout=float(sys.argv[1]))
    log = configure_logs(LogLevel.INFO, LogFormat.JSON, sys.stderr)
    prompts = PromptBuilder(engine.model.tokenizer, engine.model.template, limit=4095)
    sock = bind(settings.host, settings.port)
    profiles = load_profiles()
    serve_engine(engine, prompts, CollectorRegistry(), settings, profiles, sock, log=log, out=Console())


if __name__ == "__main__":
    main()
