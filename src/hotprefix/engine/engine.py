"""The engine: one thread that steps, and the verbs that other threads call."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import structlog

from hotprefix.base.clock import Clock
from hotprefix.base.errors import ContextLengthExceeded, Draining, InvalidRequest, Overloaded
from hotprefix.base.ids import BlockKey, RequestId
from hotprefix.cache.eviction_log import EvictionLog
from hotprefix.cache.tiering import Tiering
from hotprefix.engine.front import ServedModel
from hotprefix.engine.mailbox import Mailboxes
from hotprefix.engine.request import Delta, DeltaSink, FinishReason, GenerationRequest
from hotprefix.engine.stepper import Stepper
from hotprefix.keys.chain import TokenHistory
from hotprefix.keys.zones import PublicZone
from hotprefix.kv.top import NO_PATHS, TopLimits, TopPaths
from hotprefix.tenants.quota import TenantQuota
from hotprefix.traces.recording import Recorder

_DRAINING = "The server is shutting down. Try another one, or again later."
_log = structlog.get_logger("hotprefix.engine")
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class EngineLimits:
    """What a request may ask for: tokens of prompt and answer, and requests in the line."""

    context_length: int
    arena_tokens: int
    max_waiting: int


class Engine:
    """Implements `EngineFront` over a `Stepper` that only the engine's own thread touches.

    `start` runs the thread: it warms up, sets `ready`, then steps while there is work and sleeps
    otherwise. `stop` aborts what is left and joins it.
    """

    def __init__(
        self, model: ServedModel, stepper: Stepper, limits: EngineLimits, clock: Clock, kv_format: str = ""
    ) -> None:
        self._model = model
        self._kv_format = kv_format
        self._stepper = stepper
        self._limits = limits
        self._clock = clock
        self._wake = threading.Condition()
        self._inbox: deque[Callable[[], None]] = deque()
        self._in_flight: set[RequestId] = set()
        self._ready = threading.Event()
        self._stopping = False
        self._closed = False
        self._mailboxes = Mailboxes()
        stepper.connect(self._post)
        self._thread = threading.Thread(target=self._work, name="hotprefix-engine", daemon=True)

    @property
    def model(self) -> ServedModel:
        return self._model

    @property
    def ready(self) -> bool:
        return self._ready.is_set() and not self._stopping and not self._closed

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def stepper(self) -> Stepper:
        """The state behind the thread: for tests and for looking at it once stopped."""
        return self._stepper

    @property
    def tiering(self) -> Tiering | None:
        """What is behind the arena; None if nothing is."""
        return self._stepper.tiering

    def record_to(self, recorder: Recorder | None) -> None:
        """From now on `recorder` hears of requests that end; None: nobody does."""
        self._stepper.recorder = recorder

    def start(self) -> None:
        """Start the thread. `wait_ready` waits for the end of the warm-up."""
        self._thread.start()

    def wait_ready(self, timeout: float | None = None) -> bool:
        """Wait for the warm-up to end; False if `timeout` seconds pass first."""
        return self._ready.wait(timeout)

    def stop(self) -> None:
        """Abort every request, end the thread and wait for it."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        if self._thread.is_alive():
            self._thread.join()

    def check(self, request: GenerationRequest) -> None:
        tokens = len(request.prompt_ids)
        limits = self._limits
        if not tokens:
            raise InvalidRequest("The prompt is empty: it has no token at all.", param="prompt")
        if max(request.prompt_ids) >= self._stepper.vocab_size or min(request.prompt_ids) < 0:
            raise InvalidRequest(f"Token ids must lie in [0, {self._stepper.vocab_size}).", param="prompt")
        strategy = self._stepper.strategy_of(request)
        strategy.check(tokens, request.sampling.max_tokens)
        if strategy.cutter is None:
            self._require_fit(tokens)
        if self._stopping or self._closed:
            raise Draining(_DRAINING)
        if len(self._in_flight) >= limits.max_waiting:
            raise Overloaded(f"{len(self._in_flight)} requests are in the line already. Try again soon.")

    def _require_fit(self, tokens: int) -> None:
        limits = self._limits
        if tokens >= limits.context_length:
            raise ContextLengthExceeded(
                f"This model's context is {limits.context_length} tokens, and the prompt alone has {tokens}. "
                "Shorten the messages.",
                param="messages",
            )
        if tokens >= limits.arena_tokens:
            raise ContextLengthExceeded(
                f"The prompt has {tokens} tokens and the KV arena holds {limits.arena_tokens}. "
                "Shorten the messages, or start the server with a larger --kv-arena.",
                param="messages",
            )

    def submit(self, request: GenerationRequest, sink: DeltaSink) -> None:
        """Hand a request to the engine; `sink` gets its deltas on the engine's thread.

        Raises what `check` raises, `InvalidRequest` for a grammar that can't be compiled or for
        a request id that is in flight.
        """
        self.check(request)
        if request.request_id in self._in_flight:
            raise InvalidRequest(f"A request with the id {request.request_id} is in flight.")
        state = self._stepper.prepare(request, self._released(request.request_id, sink))
        self._in_flight.add(request.request_id)
        if not self._post(lambda: self._stepper.enqueue(state)):
            self._in_flight.discard(request.request_id)
            raise Draining(_DRAINING)

    async def stream(self, request: GenerationRequest) -> AsyncIterator[Delta]:
        box = self._mailboxes.open()
        if request.sampling.grammar is not None:
            # Compiling can take a second, without the interpreter lock: not on the event loop.
            self.check(request)
            await asyncio.to_thread(self._stepper.compile, request.sampling.grammar)
        self.submit(request, box.put)
        ended = False
        try:
            while not ended:
                delta = await box.get()
                ended = delta.last
                yield delta
        finally:
            if not ended:
                self.abort(request.request_id)

    @property
    def block_size(self) -> int:
        return self._stepper.cache.block_size

    @property
    def evictions(self) -> EvictionLog:
        return self._stepper.cache.evictions

    @property
    def kv_format(self) -> str:
        return self._kv_format

    def publish(self, zone: PublicZone) -> None:
        """Let all tenants read the prefixes of `zone` together."""
        self._stepper.publish(zone)

    def history(self, tenant: str, token_ids: Sequence[int]) -> TokenHistory:
        return self._stepper.history(tenant, token_ids)

    def root_for(self, tenant: str) -> BlockKey:
        return self._stepper.root_for(tenant)

    async def grant(self, quotas: Sequence[TenantQuota]) -> Sequence[str]:
        return await self._asked(lambda: self._stepper.grant(quotas), ())

    async def pin(self, name: str, tenant: str, token_ids: Sequence[int]) -> int:
        return await self._asked(lambda: self._stepper.pin(name, tenant, token_ids), 0)

    async def top(self, limits: TopLimits, owners: Collection[BlockKey] | None = None) -> TopPaths:
        return await self._asked(lambda: self._stepper.top(limits, owners), NO_PATHS)

    def unpin(self, name: str) -> None:
        self._post(lambda: self._stepper.unpin(name))

    def abort(self, request_id: RequestId) -> None:
        self._post(lambda: self._stepper.abort(request_id))

    def _released(self, request_id: RequestId, sink: DeltaSink) -> DeltaSink:
        def send(delta: Delta) -> None:
            if delta.last:
                self._in_flight.discard(request_id)
            sink(delta)

        return send

    async def _asked(self, question: Callable[[], _T], otherwise: _T) -> _T:
        """What the engine's thread answers, or raises; `otherwise` if that has ended."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[_T] = loop.create_future()

        def ask() -> None:
            # The question may fail for whoever asks, never for the engine's thread.
            outcome: Future[_T] = Future()
            try:
                outcome.set_result(question())
            except Exception as error:
                outcome.set_exception(error)
            with suppress(RuntimeError):  # the loop is closed: nobody is left to hear it
                loop.call_soon_threadsafe(_answer, answer, outcome)

        if not self._post(ask):
            return otherwise
        return await answer

    def _post(self, command: Callable[[], None]) -> bool:
        """Have `command` run on the engine's thread; False if that has ended."""
        with self._wake:
            if self._closed:
                return False
            self._inbox.append(command)
            self._wake.notify()
            return True

    def _work(self) -> None:
        try:
            self._stepper.warm_up()
            self._ready.set()
            while self._next_commands():
                self._guarded_step()
        except Exception:
            _log.exception("engine thread failed")
        finally:
            with self._wake:
                self._closed = True
            self._run_commands()
            self._stepper.end_all(FinishReason.ABORTED, "The server stopped before the answer was finished.")
            self._stepper.close()
            self._stepper.flush_gauges()
            self._ready.set()

    def _next_commands(self) -> bool:
        """Run what was posted; sleep while there is nothing to do. False once stopping."""
        if self._stepper.idle and not self._inbox:
            self._stepper.flush_gauges()
        while self._is_resting() and self._stepper.save_some():
            pass
        with self._wake:
            while self._is_resting():
                if not self._wake.wait(self._stepper.wait_at_most()):
                    break  # somebody's patience with the tiers has ended
        self._run_commands()
        return not self._stopping

    def _is_resting(self) -> bool:
        return self._stepper.idle and not self._inbox and not self._stopping

    def _run_commands(self) -> None:
        while self._inbox:
            self._inbox.popleft()()

    def _guarded_step(self) -> None:
        """A failing step ends the requests in flight, never the server."""
        try:
            self._stepper.step()
        except Exception:
            _log.exception("step failed")
            self._stepper.end_all(
                FinishReason.ERROR, "The engine failed while it worked on this request. Please try again."
            )


def _answer(future: asyncio.Future[_T], outcome: Future[_T]) -> None:
    """The waiting request may have been cancelled in the meantime."""
    if future.done():
        return
    error = outcome.exception()
    if error is None:
        future.set_result(outcome.result())
    else:
        future.set_exception(error)
