"""`hotprefix serve` without its command line."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing, nullcontext

from prometheus_client import CollectorRegistry
from rich.console import Console
from structlog.typing import FilteringBoundLogger

from hotprefix import __version__
from hotprefix.api.service import Prompts
from hotprefix.app.collector import settle_collector
from hotprefix.app.listen import bind, cannot_listen, url_of
from hotprefix.app.serving import Serving, loop_factory
from hotprefix.app.settings import ServeSettings
from hotprefix.app.sizes import show_size
from hotprefix.app.waiting_room import WaitingRoom
from hotprefix.app.warm_file import Prefix, read_warm_files
from hotprefix.app.warm_up import warm_up
from hotprefix.app.wiring import (
    application,
    new_metrics,
    prompt_builder,
    read_grants,
    recorded,
    running_engine,
    served_model,
    texts,
)
from hotprefix.engine.front import EngineFront, ServedModel
from hotprefix.models.store import ModelStore
from hotprefix.profiles.loader import ProfileBook, load_profiles


def serve(
    settings: ServeSettings, store: ModelStore, log: FilteringBoundLogger, *, out: Console, progress: Console
) -> None:
    """Load, announce on `out`, serve until stopped by a signal. Raises `HotprefixError`.

    The address is taken first, so that a taken one is an error before the model is loaded. Until the
    server is ready, a waiting room answers on it.
    """
    profiles = load_profiles(settings.profiles_dir)
    settings = settings.under(profiles)
    prefixes = read_warm_files(settings.warm)
    grants = read_grants(settings)
    with closing(bind(settings.host, settings.port)) as sock, WaitingRoom(sock) as waiting:
        manifest = store.resolve(settings.model)
        if settings.rope_scaling is not None:
            manifest = settings.rope_scaling.applied_to(manifest)
        with progress.status(f"Loading {manifest.name} …") as status:
            known = texts(manifest)
            model = served_model(manifest, known.tokenizer, settings)
            metrics = new_metrics(model)
            engine_life = running_engine(manifest, model, known.answers, settings, metrics, grants)
            with engine_life as engine, recorded(engine, settings.trace, log):
                status.stop()
                waiting.close()
                serve_engine(
                    engine,
                    prompt_builder(manifest, model, known.answers),
                    metrics.registry,
                    settings,
                    profiles,
                    sock,
                    log=log,
                    out=out,
                    prefixes=prefixes,
                    progress=progress,
                )


def serve_engine(
    engine: EngineFront,
    prompts: Prompts,
    registry: CollectorRegistry,
    settings: ServeSettings,
    profiles: ProfileBook,
    sock: socket.socket,
    *,
    log: FilteringBoundLogger,
    out: Console,
    prefixes: Sequence[Prefix] = (),
    progress: Console | None = None,
) -> None:
    """Serve an engine on a bound socket until a signal comes; `prefixes` are warm before it is ready."""
    bars = progress or Console(stderr=True)

    async def run() -> None:
        with application(engine, prompts, registry, log, settings, profiles) as built:
            serving = Serving(built.app, built.inflight, log, drain_timeout=settings.drain_timeout)

            async def get_ready() -> None:
                await warm_up(built, prefixes, settings.warm_key, log, bars)
                settle_collector()
                if not built.inflight.draining:
                    announce(engine.model, settings, url_of(sock), out)

            async with built.grants.in_force() if built.grants is not None else nullcontext():
                await _serve_and(get_ready, serving, sock)

    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            runner.run(run())
        except OSError as error:
            if error.filename is not None:  # about a file, not the address
                raise
            raise cannot_listen(settings.host, settings.port, error) from None


async def _serve_and(get_ready: Callable[[], Awaitable[None]], serving: Serving, sock: socket.socket) -> None:
    """Serve, and get ready as soon as connections are accepted; a failure of that stops the server."""
    listening = asyncio.Event()

    async def ready_when_listening() -> None:
        await listening.wait()
        try:
            await get_ready()
        except BaseException:
            serving.stop()
            raise

    with serving.stopped_by_signals():
        getting_ready = asyncio.create_task(ready_when_listening())
        try:
            await serving.run(sock, listening.set)
        finally:
            getting_ready.cancel()
            await asyncio.wait([getting_ready])
    if not getting_ready.cancelled():
        getting_ready.result()


def announce(model: ServedModel, settings: ServeSettings, url: str, out: Console) -> None:
    """Where the server is, what it serves, and a line to try it with."""
    cache = f"prefix cache {settings.policy.value}" if settings.cache else "prefix cache off"
    kept = (
        f"{settings.kv_precision.value} ({model.kv_precision}, {model.kv_bytes_per_token:,.0f} bytes a token)"
    )
    body = {"model": model.name, "messages": [{"role": "user", "content": "Say hello in five words."}]}
    lines = (
        f"Hotprefix {__version__} is ready on {url}",
        f"  model    {model.name}, context {model.context_length:,} tokens",
        f"  profile  {settings.profile}",
        f"  arena    up to {show_size(settings.kv_arena)}, {kept}, {cache}",
        "  try      "
        + f"curl {url}/v1/chat/completions -H 'content-type: application/json' -d '{json.dumps(body)}'",
    )
    page = [f"  look at  {url}/dashboard"] if settings.dashboard else []
    for line in (*lines, *page):
        out.print(line, markup=False, highlight=False, soft_wrap=True)
    out.file.flush()
