"""The application over a scripted engine, in process or on a real socket."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from prometheus_client import CollectorRegistry
from starlette.types import ASGIApp
from structlog import wrap_logger
from structlog.testing import CapturingLogger

from hotprefix.api.application import build_application
from hotprefix.api.dashboard.recent import RecentRequests
from hotprefix.api.identity import Doorman
from hotprefix.api.inflight import InFlight
from hotprefix.api.prefill import prefill_with
from hotprefix.api.service import Service
from hotprefix.api.settings import ApiSettings
from hotprefix.api.start_gate import StartGate
from hotprefix.app.serving import Serving
from hotprefix.base.clock import Clock, SystemClock
from hotprefix.diagnosis.memory import SnapshotMemory
from hotprefix.ledger.ledger import Ledger
from hotprefix.modes.caching import Caching
from hotprefix.modes.doctor import Doctor
from hotprefix.modes.entries import EntryBook
from hotprefix.modes.named import NamedCaches
from hotprefix.modes.named_cache import NamedLimits
from hotprefix.modes.named_store import MemoryStore
from hotprefix.profiles.loader import DEFAULT_PROFILE, load_profiles
from hotprefix.prompt.builder import PromptBuilder
from hotprefix.prompt.preprocess.catalogue import StepName
from hotprefix.sessions.sessions import Sessions
from hotprefix.sessions.store import SESSION_FILE
from tests.api.scripted_engine import ScriptedEngine

HELLO = [{"role": "user", "content": "Hello, wörld! 🙂"}]

NAMED_LIMITS = NamedLimits(caches=5, per_tenant=3, tokens_per_tenant=3000)


@dataclass
class Server:
    engine: ScriptedEngine
    inflight: InFlight
    app: ASGIApp
    log: CapturingLogger
    client: httpx.AsyncClient
    sessions: Sessions
    service: Service

    def lines(self, event: str = "request") -> list[dict[str, Any]]:
        """What was logged, with the level under `level`."""
        calls = [(call.method_name, call.kwargs) for call in self.log.calls]
        return [fields | {"level": level} for level, fields in calls if fields["event"] == event]

    async def chat(self, **fields: Any) -> httpx.Response:
        body = {"model": "scripted", "messages": HELLO} | fields
        return await self.client.post("/v1/chat/completions", json=body)

    async def chunks(self, path: str = "/v1/chat/completions", **fields: Any) -> list[dict[str, Any]]:
        """A stream's chunks; checks that `[DONE]` is there once, at the end."""
        body: dict[str, Any] = {"model": "scripted", "stream": True}
        if path.endswith("chat/completions"):
            body["messages"] = HELLO
        response = await self.client.post(path, json=body | fields)
        assert response.status_code == 200, response.text
        assert response.headers["content-type"].startswith("text/event-stream")
        return read_events(response.text)


@dataclass
class Socket:
    host: str
    port: int
    serving: Serving
    running: asyncio.Task[None]

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    async def send(self, head: str, body: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which `head` (lines) and `body` have been sent."""
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(head.strip().replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        await writer.drain()
        return reader, writer

    async def post(self, **fields: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which a chat request has been sent."""
        body = json.dumps({"model": "scripted", "messages": HELLO} | fields).encode()
        head = f"POST /v1/chat/completions HTTP/1.1\nhost: x\ncontent-length: {len(body)}"
        return await self.send(head, body)


def read_events(text: str) -> list[dict[str, Any]]:
    events = text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert text.count("[DONE]") == 1
    return [json.loads(event.removeprefix("data: ")) for event in events[:-2]]


@asynccontextmanager
async def in_process(
    engine: ScriptedEngine,
    settings: ApiSettings | None = None,
    *,
    profile: str = DEFAULT_PROFILE,
    preprocess: tuple[StepName, ...] = (),
    clock: Clock | None = None,
    ledger: Ledger | None = None,
    state: Path | None = None,
    recent: RecentRequests | None = None,
    doorman: Doorman | None = None,
) -> AsyncIterator[Server]:
    inflight = InFlight(engine)
    log = CapturingLogger()
    gate = StartGate()
    gate.open()
    time = clock or SystemClock()
    caching = Caching(EntryBook(100), engine, time, engine.block_size)
    sessions = Sessions(None if state is None else state / SESSION_FILE, time)
    with ThreadPoolExecutor(1) as workers, closing(sessions):
        service = Service(
            engine=engine,
            prompts=PromptBuilder(
                engine.model.tokenizer, engine.model.template, limit=engine.model.context_length - 1
            ),
            settings=settings or ApiSettings(),
            inflight=inflight,
            workers=workers,
            registry=CollectorRegistry(),
            log=wrap_logger(log, processors=[]),
            clock=SystemClock(),
            profile=load_profiles().get(profile),
            profiles=load_profiles(),
            caching=caching,
            named=NamedCaches(MemoryStore(), engine, prefill_with(engine), time, "scripted", NAMED_LIMITS),
            gate=gate,
            preprocess=preprocess,
            doctor=Doctor(SnapshotMemory(), caching, time, engine.evictions),
            ledger=ledger,
            sessions=sessions,
            recent=recent,
            doorman=doorman,
        )
        app = build_application(service)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            yield Server(engine, inflight, app, log, client, sessions, service)


@asynccontextmanager
async def on_socket(
    server: Server, *, drain_timeout: float = 5.0, last_words: float = 5.0
) -> AsyncIterator[Socket]:
    """A real uvicorn."""
    sock = socket.create_server(("127.0.0.1", 0))
    serving = Serving(
        server.app,
        server.inflight,
        wrap_logger(server.log, processors=[]),
        drain_timeout=drain_timeout,
        last_words=last_words,
    )
    started = asyncio.Event()
    running = asyncio.create_task(serving.run(sock, started.set))
    await started.wait()
    try:
        yield Socket(*sock.getsockname(), serving, running)
    finally:
        serving.stop()
        serving.stop()
        await running
