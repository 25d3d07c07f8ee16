"""The composition root: settings → a running engine and the application in front of it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp
from structlog.typing import FilteringBoundLogger

from hotprefix import __version__
from hotprefix.api.admin_desk import AdminDesk, AdminPart
from hotprefix.api.admin_keys import AdminKeys
from hotprefix.api.admin_shares import AdminShares
from hotprefix.api.admin_view import AdminView
from hotprefix.api.application import build_application
from hotprefix.api.dashboard.recent import RecentRequests
from hotprefix.api.identity import Doorman
from hotprefix.api.inflight import InFlight
from hotprefix.api.live_grants import LiveGrants
from hotprefix.api.metrics import ServerMetrics
from hotprefix.api.prefill import prefill_with
from hotprefix.api.service import Prompts, Service
from hotprefix.api.settings import ApiSettings
from hotprefix.api.start_gate import StartGate
from hotprefix.api.tier_metrics import TierCollector
from hotprefix.app.settings import ServeSettings
from hotprefix.app.state import ledger_file
from hotprefix.base.clock import Clock, SystemClock
from hotprefix.base.errors import ModelError
from hotprefix.diagnosis.memory import SnapshotMemory
from hotprefix.engine.engine import Engine
from hotprefix.engine.front import EngineFront, ServedModel
from hotprefix.engine.loader import load_engine
from hotprefix.engine.settings import EngineSettings
from hotprefix.ledger.ledger import Ledger
from hotprefix.ledger.store import open_store
from hotprefix.models.generation import sampling_defaults
from hotprefix.models.manifest import ModelManifest
from hotprefix.modes.caching import Caching
from hotprefix.modes.doctor import Doctor
from hotprefix.modes.entries import EntryBook
from hotprefix.modes.entry_store import ENTRIES_FILE, SqliteEntries
from hotprefix.modes.named import NamedCaches
from hotprefix.modes.named_store import CACHES_FILE, MemoryStore, NamedStore, SqliteNamedStore
from hotprefix.profiles.loader import ProfileBook
from hotprefix.prompt.answers import AnswerMemory
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.hf_tokenizer import HfTokenizer
from hotprefix.prompt.segments import SegmentedTokenizer
from hotprefix.prompt.template import JinjaTemplate
from hotprefix.prompt.tokenizer import Tokenizer
from hotprefix.sessions.sessions import Sessions
from hotprefix.sessions.store import SESSION_FILE
from hotprefix.tenants.authenticator import Authenticator
from hotprefix.tenants.limiter import RateLimiter
from hotprefix.tenants.quota import TenantQuota
from hotprefix.tenants.tenancy import Tenancy, open_tenancy
from hotprefix.traces.recording import TraceRecording

_TOKENISING_THREADS = 2
_SEGMENT_BYTES = 32 * 1024 * 1024
_ANSWER_BYTES = 16 * 1024 * 1024
_ENTRIES = 10_000
"""Explicit and session cache entries of all tenants together."""


@dataclass(frozen=True, slots=True)
class Application:
    """What is served, the register of what is in flight, and what all of it works with.

    `grants` are for whoever serves to keep in force; None without a state folder.
    """

    app: ASGIApp
    inflight: InFlight
    service: Service
    grants: LiveGrants | None = None


@dataclass(frozen=True, slots=True)
class Texts:
    """Text ↔ tokens of a model: segments of text and answers are remembered with their ids."""

    tokenizer: SegmentedTokenizer
    answers: AnswerMemory


def texts(manifest: ModelManifest) -> Texts:
    """The tokenizer of a prepared model and what it remembers."""
    tokenizer = SegmentedTokenizer(HfTokenizer(manifest.tokenizer), _SEGMENT_BYTES)
    return Texts(tokenizer, AnswerMemory(tokenizer, _ANSWER_BYTES))


def served_model(manifest: ModelManifest, tokenizer: Tokenizer, settings: ServeSettings) -> ServedModel:
    """The model as clients see it: `--served-name` becomes its name, its own an alias."""
    bos = "" if manifest.bos_id is None else tokenizer.token_bytes(manifest.bos_id).decode()
    eos = tokenizer.token_bytes(manifest.eos_ids[0]).decode() if manifest.eos_ids else ""
    context = manifest.context_length
    return ServedModel(
        name=settings.served_name or manifest.name,
        aliases=(manifest.name,) if settings.served_name else (),
        context_length=context if settings.max_context is None else min(context, settings.max_context),
        created=manifest.created,
        tokenizer=tokenizer,
        template=JinjaTemplate(manifest.chat_template, bos_token=bos, eos_token=eos),
        fingerprint=manifest.fingerprint,
        defaults=sampling_defaults(manifest),
    )


def prompt_builder(manifest: ModelManifest, model: ServedModel, answers: AnswerMemory) -> PromptBuilder:
    """At least one token of the context is left for the answer."""
    head = (manifest.bos_id,) if manifest.add_bos and manifest.bos_id is not None else ()
    limit = model.context_length - 1
    return PromptBuilder(model.tokenizer, model.template, answers=answers, head=head, limit=limit)


@dataclass(frozen=True, slots=True)
class Grants:
    """What the state folder says of tenants when the engine is built: their shares of the cache, which may
    change later. `secret` keys their roots."""

    quotas: tuple[TenantQuota, ...]
    secret: bytes


def read_grants(settings: ServeSettings) -> Grants:
    """None, and a secret of this process alone, without a state folder. Raises `TenantError`."""
    if settings.state_dir is None:
        return Grants((), secrets.token_bytes(32))
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    with open_tenancy(settings.state_dir, SystemClock()) as tenancy:
        return Grants(tuple(tenancy.quotas.list()), tenancy.secret)


def engine_settings(settings: ServeSettings, grants: Grants) -> EngineSettings:
    """The engine's part; what was not asked for keeps the engine's own default."""
    chosen: dict[str, Any] = {
        "max_running": settings.max_running,
        "max_waiting": settings.max_waiting,
        "prefill_chunk": settings.prefill_chunk,
        "shortest_kept": settings.shortest_kept,
    }
    return EngineSettings(
        arena_bytes=settings.kv_arena,
        kv_precision=settings.kv_precision.value,
        kv_16bit_layers=settings.kv_16bit_layers,
        policy=settings.policy.value if settings.cache else None,
        max_context=settings.max_context,
        threads=settings.threads,
        decode=settings.decode,
        secret=grants.secret,
        tiers=settings.tiers,
        strategy=settings.strategy,
        quotas=grants.quotas,
        **{name: value for name, value in chosen.items() if value is not None},
    )


@contextmanager
def running_engine(
    manifest: ModelManifest,
    model: ServedModel,
    answers: AnswerMemory,
    settings: ServeSettings,
    metrics: ServerMetrics,
    grants: Grants,
) -> Iterator[Engine]:
    """An engine that is warm; stopped on leaving. Raises `ModelError`."""
    engine = load_engine(manifest, model, answers, engine_settings(settings, grants), metrics, SystemClock())
    metrics.keeps(engine.model.kv_precision, engine.model.kv_bytes_per_token)
    if (tiering := engine.tiering) is not None:
        stack = tiering.stack
        collector = TierCollector(stack.stats, lambda: tiering.restored_tokens, lambda: stack.dropped)
        metrics.registry.register(collector)
    engine.start()
    try:
        engine.wait_ready()
        if not engine.ready:
            raise ModelError(f"{manifest.name} could not be started; the log above says why.")
        yield engine
    finally:
        engine.stop()


@contextmanager
def recorded(engine: Engine, trace: Path | None, log: FilteringBoundLogger) -> Iterator[None]:
    """Requests of `engine` are appended to a trace, if one is named. Raises `BrokenTrace`."""
    if trace is None:
        yield
        return
    block_size = engine.block_size
    with closing(
        TraceRecording(trace, block_size, lambda text: log.warning("trace", problem=text))
    ) as recording:
        engine.record_to(recording)
        try:
            yield
        finally:
            engine.record_to(None)


@contextmanager
def application(
    engine: EngineFront,
    prompts: Prompts,
    registry: CollectorRegistry,
    log: FilteringBoundLogger,
    settings: ServeSettings,
    profiles: ProfileBook,
) -> Iterator[Application]:
    """The HTTP side in front of an engine; entered on the event loop that serves it."""
    inflight, clock = InFlight(engine), SystemClock()
    disabled = "" if settings.cache else "prefix cache"
    limits = ApiSettings(
        body_limit=settings.body_limit, isolate_scenes=settings.isolate_scenes, redact=settings.redact
    )
    with opened_stores(engine, settings, log, clock) as stores:
        doors, workers = stores.doors, stores.workers
        caching = Caching(stores.book, engine, clock, engine.block_size)
        grants = None if doors is None else LiveGrants(doors.tenancy, engine, prompts, workers, log)
        service = Service(
            engine=engine,
            prompts=prompts,
            settings=limits,
            inflight=inflight,
            workers=workers,
            registry=registry,
            log=log,
            clock=clock,
            profile=profiles.get(settings.profile),
            profiles=profiles,
            caching=caching,
            named=stores.named,
            gate=StartGate(),
            preprocess=settings.preprocess,
            doctor=Doctor(SnapshotMemory(), caching, clock, engine.evictions, disabled),
            strategy=settings.strategy,
            ledger=stores.ledger,
            recent=RecentRequests(words=not settings.redact) if settings.dashboard else None,
            sessions=stores.sessions,
            doorman=doors.doorman if doors else None,
            admin=admin_parts(stores, grants, limits),
        )
        yield Application(build_application(service), inflight, service, grants)


@dataclass(frozen=True, slots=True)
class Stores:
    """What lasts beside the engine, and the threads that tokenise."""

    book: EntryBook
    workers: ThreadPoolExecutor
    ledger: Ledger | None
    named: NamedCaches
    sessions: Sessions
    doors: Doors | None


@contextmanager
def opened_stores(
    engine: EngineFront, settings: ServeSettings, log: FilteringBoundLogger, clock: Clock
) -> Iterator[Stores]:
    """Closed on leaving. Raises what each of them raises."""
    with (
        entry_book(settings, clock, log) as book,
        ThreadPoolExecutor(_TOKENISING_THREADS, thread_name_prefix="hotprefix-tokenise") as workers,
        open_ledger(settings, log) as ledger,
        named_caches(engine, settings, clock) as named,
        closing(open_sessions(settings, clock)) as sessions,
        open_doors(settings, clock) as doors,
    ):
        yield Stores(book, workers, ledger, named, sessions, doors)


@contextmanager
def entry_book(settings: ServeSettings, clock: Clock, log: FilteringBoundLogger) -> Iterator[EntryBook]:
    """Explicit and session entries, with those of the process before if their blocks may still be there.

    Raises `BrokenCacheStore`.
    """
    if settings.state_dir is None:
        yield EntryBook(_ENTRIES)
        return

    def complain(text: str) -> None:
        log.warning("cache entries", problem=text)

    with closing(SqliteEntries(settings.state_dir / ENTRIES_FILE, clock, complain)) as journal:
        book = EntryBook(_ENTRIES, journal)
        for entry in journal.load():
            if settings.tiers.is_lasting:
                book.add(entry)
            else:
                journal.forget(entry.key)
                book.bury(entry, "restart")
        yield book


@contextmanager
def named_caches(engine: EngineFront, settings: ServeSettings, clock: Clock) -> Iterator[NamedCaches]:
    """Those of the state folder, or none that outlive the process. Raises `BrokenCacheStore`."""
    folder = settings.state_dir
    store: NamedStore = MemoryStore() if folder is None else SqliteNamedStore(folder / CACHES_FILE)
    identity = f"{engine.model.fingerprint}/{engine.kv_format}"
    try:
        yield NamedCaches(store, engine, prefill_with(engine), clock, identity, settings.named)
    finally:
        store.close()


@contextmanager
def open_ledger(settings: ServeSettings, log: FilteringBoundLogger) -> Iterator[Ledger | None]:
    """The ledger in the state folder or at `--ledger-url`; None without either. Raises `LedgerError`."""
    if settings.ledger_url is None and settings.state_dir is None:
        yield None
        return
    where: str | Path = settings.ledger_url or ""
    if settings.ledger_url is None and settings.state_dir is not None:
        settings.state_dir.mkdir(parents=True, exist_ok=True)
        where = ledger_file(settings.state_dir)
    ledger = Ledger(open_store(where), complain=lambda text: log.warning("ledger", problem=text))
    try:
        yield ledger
    finally:
        ledger.close()


def open_sessions(settings: ServeSettings, clock: Clock) -> Sessions:
    """Stored responses in the state folder; in memory without one. Raises `SessionStoreError`."""
    folder = settings.state_dir
    return Sessions(None if folder is None else folder / SESSION_FILE, clock)


@dataclass(frozen=True, slots=True)
class Doors:
    """What is known of tenants, and who asks for their keys."""

    tenancy: Tenancy
    doorman: Doorman


@contextmanager
def open_doors(settings: ServeSettings, clock: Clock) -> Iterator[Doors | None]:
    """API keys and rate limits of the state folder; None without one. Raises `TenantError`."""
    if settings.state_dir is None:
        yield None
        return
    settings.state_dir.mkdir(parents=True, exist_ok=True)
    with open_tenancy(settings.state_dir, clock) as tenancy:
        authenticator = Authenticator(
            tenancy.keys, tenancy.quotas, tenancy.secret, require_keys=settings.require_keys
        )
        yield Doors(tenancy, Doorman(authenticator, RateLimiter(), clock))


def admin_parts(stores: Stores, grants: LiveGrants | None, limits: ApiSettings) -> tuple[AdminPart, ...]:
    """The admin API; there is none without a state folder."""
    doors = stores.doors
    if doors is None or grants is None:
        return ()
    desk = AdminDesk(doors.doorman, stores.workers, limits)
    keys = AdminKeys(desk, doors.tenancy.keys, SystemClock())
    return keys, AdminShares(desk, doors.tenancy, grants), AdminView(desk, stores.named, stores.ledger)


def new_metrics(model: ServedModel) -> ServerMetrics:
    """Metrics in a registry of their own."""
    return ServerMetrics(CollectorRegistry(), version=__version__, model=model.name)
