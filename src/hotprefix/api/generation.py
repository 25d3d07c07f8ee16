"""One request's way through the engine, to a stream of events or a whole answer."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from hotprefix.api.body import ClientGoneError
from hotprefix.api.errors import problem_of
from hotprefix.api.feed import Arrival, Feed, watching
from hotprefix.api.frame import DONE, ChunkEncoder, Frame, Piece, error_event
from hotprefix.api.record import record_of
from hotprefix.api.respond import end_events, send_events, send_json, start_events
from hotprefix.api.service import Service
from hotprefix.base.errors import LogicError, Unavailable
from hotprefix.engine.request import Delta, FinishReason, GenerationRequest, Sampling, Usage

_SHOWN_FIELDS = 32


@dataclass(frozen=True, slots=True)
class Job:
    """What the engine is to do: `n` answers to each prompt. `ignored` are fields without effect."""

    prompts: Sequence[list[int]]
    sampling: Sampling
    n: int
    ignored: Sequence[str]
    frame: Frame


class Answer(Protocol):
    """Turns deltas into the pieces that a dialect shows, and pieces into whole choices."""

    def pieces(self, prompt: int, delta: Delta) -> Iterable[Piece]:
        """Entries of a stream's `choices`."""
        ...

    def fold(self, piece: Piece) -> None:
        """Put a piece where it belongs in the whole answer."""
        ...

    def choices(self) -> list[Piece]:
        """All that was folded: a whole answer says what the stream would have said."""
        ...


class Generation:
    """Runs one job for one HTTP request."""

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        self._service = service
        self._receive = receive
        self._send = send
        self._record = record_of(scope)
        self._tenant = tenant_of(scope)
        self._totals = Totals()

    async def stream(self, job: Job, answer: Answer) -> None:
        """Answer with events that don't tell the usage."""
        await self._stream(job, answer, job.frame.encoder(), lambda _: b"")

    async def stream_with_usage(self, job: Job, answer: Answer) -> None:
        """Answer with events, the last of which tells the usage."""
        await self._stream(job, answer, job.frame.usage_encoder(), job.frame.usage_event)

    async def whole(self, job: Job, answer: Answer) -> None:
        """Answer in one piece."""
        async with self._feed(job) as feed:
            async for burst in feed.bursts():
                for prompt, delta in self._checked(burst):
                    for piece in answer.pieces(prompt, delta):
                        answer.fold(piece)
            self._totals.require_complete()
        document = job.frame.whole(answer.choices(), self._totals.usage())
        await send_json(self._send, 200, document, ignored_header(job.ignored))

    async def _stream(
        self, job: Job, answer: Answer, encoder: ChunkEncoder, ending: Callable[[Usage], bytes]
    ) -> None:
        async with self._feed(job) as feed:
            await feed.require_submitted()
            await start_events(self._send, ignored_header(job.ignored))
            try:
                async for burst in feed.bursts():
                    events = [
                        encoder.event(piece)
                        for prompt, delta in self._checked(burst)
                        for piece in answer.pieces(prompt, delta)
                    ]
                    if events:
                        await send_events(self._send, b"".join(events))
                self._totals.require_complete()
                tail = ending(self._totals.usage())
            except ClientGoneError:
                raise
            except Exception as error:  # the status is out already: say it in the stream
                tail = self._told(error)
            await end_events(self._send, tail + DONE)

    @asynccontextmanager
    async def _feed(self, job: Job) -> AsyncIterator[Feed]:
        engine, inflight = self._service.engine, self._service.inflight
        with ExitStack() as claims:
            requests = []
            for number, prompt in enumerate(job.prompts):
                wanted = self._record.request_id if not number else f"{self._record.request_id}.{number}"
                name = claims.enter_context(inflight.claim(wanted))
                requests.append(GenerationRequest(name, prompt, job.sampling, job.n, self._tenant))
            inflight.refuse_if_aborting()
            for request in requests:
                engine.check(request)
            self._totals.submitted([len(prompt) for prompt in job.prompts])
            streams = [engine.stream(request) for request in requests]
            try:
                async with Feed(streams) as feed, watching(self._receive, feed.client_gone):
                    yield feed
            finally:
                self._record.model = job.frame.model
                self._record.usage = self._totals.usage()
                self._record.finish_reason = self._totals.reasons()

    def _checked(self, burst: Iterable[Arrival]) -> Iterator[Arrival]:
        """Count what passes, and turn an end that is no answer into an error."""
        if self._record.first_token is None:
            self._record.first_token = self._service.clock.now()
        for prompt, delta in burst:
            self._totals.add(prompt, delta)
            if delta.finish_reason is FinishReason.ERROR:
                raise LogicError(f"the engine gave up on a request: {delta.error or 'no reason given'}")
            if delta.finish_reason is FinishReason.ABORTED:
                self._service.inflight.refuse_if_aborting()
                raise Unavailable("The server ended this request before it was complete; send it again.")
            yield prompt, delta

    def _told(self, error: Exception) -> bytes:
        problem = problem_of(error, self._record.request_id)
        self._record.error = problem.code or problem.kind
        if problem.kind == "server_error":
            self._service.log.error("stream failed", request_id=self._record.request_id, exc_info=error)
        return error_event(problem)


class Totals:
    """Tokens of all prompts of a job; right even if the request ends early."""

    def __init__(self) -> None:
        self._prompts: list[int] = []
        self._final: dict[int, Usage] = {}
        self._drawn: list[int] = []
        self._cached: list[int] = []
        self._reasons: set[str] = set()

    def submitted(self, lengths: list[int]) -> None:
        """The prompts' lengths in tokens."""
        self._prompts = lengths
        self._drawn = [0] * len(lengths)
        self._cached = [0] * len(lengths)

    def add(self, prompt: int, delta: Delta) -> None:
        self._drawn[prompt] += len(delta.token_ids)
        if delta.usage is not None:
            self._cached[prompt] = delta.usage.cached_tokens
            if delta.last:
                self._final[prompt] = delta.usage
        if delta.finish_reason is not None:
            self._reasons.add(delta.finish_reason)

    def usage(self) -> Usage:
        """The engine's own figures where a prompt has ended, what was seen so far elsewhere."""
        cached = drawn = 0
        for prompt in range(len(self._prompts)):
            final = self._final.get(prompt)
            cached += final.cached_tokens if final else self._cached[prompt]
            drawn += final.completion_tokens if final else self._drawn[prompt]
        return Usage(prompt_tokens=sum(self._prompts), cached_tokens=cached, completion_tokens=drawn)

    def reasons(self) -> str | None:
        """Why the choices ended, for the log."""
        return ",".join(sorted(self._reasons)) or None

    def require_complete(self) -> None:
        """Raise `LogicError` if a stream ended without its last delta."""
        if len(self._final) != len(self._prompts):
            raise LogicError("a stream of the engine ended without a last delta that has the usage")


def tenant_of(scope: Scope) -> str:
    """Caches are separated by credential: a digest of it, or empty without one."""
    headers = Headers(scope=scope)
    credential = headers.get("authorization") or headers.get("x-api-key") or ""
    return hashlib.blake2b(credential.encode(), digest_size=16).hexdigest() if credential else ""


def ignored_header(names: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """Tells which fields had no effect; long or odd names are shortened and escaped."""
    if not names:
        return []
    shown = [name[:64].encode("unicode_escape").decode("ascii") for name in names[:_SHOWN_FIELDS]]
    safe = ", ".join("".join(c if 32 < ord(c) < 127 and c != "," else "?" for c in name) for name in shown)
    return [(b"x-hotprefix-ignored", safe.encode("ascii"))]
