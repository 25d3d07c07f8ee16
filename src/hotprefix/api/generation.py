"""One request's way through the engine, to a stream of events or a whole answer."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from hotprefix.api.account import Account
from hotprefix.api.admittance import admission_of
from hotprefix.api.bill import Bill
from hotprefix.api.body import ClientGoneError
from hotprefix.api.booking import Booking, booking_of, keep
from hotprefix.api.errors import problem_of
from hotprefix.api.feed import Arrival, Feed, watching
from hotprefix.api.prewarm import prefilled
from hotprefix.api.record import record_of
from hotprefix.api.respond import end_events, send_events, send_json, start_events
from hotprefix.api.service import Service
from hotprefix.api.shower import Shower
from hotprefix.api.strategy_wish import settled, strategy_headers
from hotprefix.api.wishes import current_wishes
from hotprefix.base.errors import LogicError, Unavailable
from hotprefix.diagnosis.explain import redacted
from hotprefix.engine.request import FinishReason, GenerationRequest, Sampling
from hotprefix.engine.strategy.choice import StrategyChoice
from hotprefix.ledger.row import LedgerRow
from hotprefix.modes.turn import TurnRequest

_SHOWN_FIELDS = 32


@dataclass(frozen=True, slots=True)
class Job:
    """What the engine is to do: `n` answers to each prompt. `ignored` are fields without effect;
    `headers` go on the response; `settled` is awaited with the bill before the answer's last word;
    with `prefill_only` nothing of the answers is shown or billed."""

    model: str
    turns: Sequence[TurnRequest]
    sampling: Sampling
    n: int
    ignored: Sequence[str] = ()
    headers: Sequence[tuple[bytes, bytes]] = ()
    settled: Callable[[Bill], Awaitable[None]] | None = None
    prefill_only: bool = False


class Generation:
    """Runs one job for one HTTP request."""

    def __init__(self, service: Service, scope: Scope, receive: Receive, send: Send) -> None:
        self._service = service
        self._receive = receive
        self._send = send
        self._scope = scope
        self._record = record_of(scope)
        self._is_settled = False
        self._reasons: set[str] = set()
        self._strategy: StrategyChoice | None = None

    async def whole(self, job: Job, shower: Shower) -> None:
        """Answer in one piece."""
        async with self._feed(job) as (feed, account):
            async for burst in feed.bursts():
                for prompt, delta in await self._checked(burst, account):
                    shower.fold(prompt, delta)
            bill = await self._settled(job, account)
        await send_json(self._send, 200, shower.whole(bill), self._headers(job, account))

    async def stream(self, job: Job, shower: Shower) -> None:
        """Answer with events. The status goes out with the first of them, so that what fails before
        has its own status."""
        async with self._feed(job) as (feed, account):
            started = False
            try:
                async for burst in feed.bursts():
                    arrivals = list(await self._checked(burst, account))
                    if not started:
                        await start_events(self._send, self._headers(job, account))
                        started = True
                        events = [shower.start(account.opening())]
                    else:
                        events = []
                    events += [shower.show(prompt, delta) for prompt, delta in arrivals]
                    if shown := b"".join(events):
                        await send_events(self._send, shown)
                tail = shower.end(await self._settled(job, account))
            except ClientGoneError:
                raise
            except Exception as error:
                if not started:
                    raise
                tail = self._told(error, shower)
            await end_events(self._send, tail)

    @asynccontextmanager
    async def _feed(self, job: Job) -> AsyncIterator[tuple[Feed, Account]]:
        engine, inflight = self._service.engine, self._service.inflight
        with ExitStack() as claims:
            requests, wishes = [], current_wishes()
            keeps_short = wishes.keeps_short or job.prefill_only
            for number, turn in enumerate(job.turns):
                wanted = self._record.request_id if not number else f"{self._record.request_id}.{number}"
                name = claims.enter_context(inflight.claim(wanted))
                prompt = turn.prompt.token_ids
                how = settled(wishes.strategy, self._service.strategy, turn.prompt)
                tenant = turn.cache_tenant
                requests.append(
                    GenerationRequest(name, prompt, job.sampling, job.n, tenant, how, keeps_short)
                )
            self._strategy = requests[0].strategy
            inflight.refuse_if_aborting()
            for request in requests:
                engine.check(request)
            admission = admission_of(self._scope)
            if admission is not None:
                admission.charge(sum(len(turn.prompt.token_ids) for turn in job.turns))
            account = Account(self._service.caching, self._service.doctor, job.turns)
            streams = [engine.stream(request) for request in requests]
            if job.prefill_only:
                streams = [prefilled(stream) for stream in streams]
            try:
                async with Feed(streams) as feed, watching(self._receive, feed.client_gone):
                    await feed.require_submitted()
                    account.examine()
                    yield feed, account
            finally:
                self._record.model = job.model
                self._record.usage = account.usage()
                self._record.notes = dict(job.turns[0].notes)
                self._record.finish_reason = ",".join(sorted(self._reasons)) or None
                self._book_unsettled(job, account)

    async def _checked(self, burst: Iterable[Arrival], account: Account) -> Iterator[Arrival]:
        """Count what passes, and turn an end that is no answer into an error."""
        if self._record.first_token is None:
            self._record.first_token = self._service.clock.now()
        passed = []
        for prompt, delta in burst:
            await account.note(prompt, delta)
            if delta.finish_reason is not None:
                self._reasons.add(delta.finish_reason)
            if delta.finish_reason is FinishReason.ERROR:
                raise LogicError(f"the engine gave up on a request: {delta.error or 'no reason given'}")
            if delta.finish_reason is FinishReason.ABORTED:
                self._service.inflight.refuse_if_aborting()
                raise Unavailable("The server ended this request before it was complete; send it again.")
            passed.append((prompt, delta))
        return iter(passed)

    async def _settled(self, job: Job, account: Account) -> Bill:
        if not account.is_complete:
            raise LogicError("a stream of the engine ended without a last delta that has the usage")
        bill = await account.settle()
        self._is_settled = True
        ledger = self._service.ledger
        if ledger is not None:
            row = self._row(job, bill, account, ",".join(sorted(self._reasons)))
            await keep(ledger, row)
            self._show(row, account)
        if job.settled is not None:
            await job.settled(bill)
        return bill

    def _book_unsettled(self, job: Job, account: Account) -> None:
        """The request ended early: what was done until then is booked all the same."""
        if self._is_settled:
            return
        self._is_settled = True
        bill = account.cancel()
        if self._service.ledger is not None:
            row = self._row(job, bill, account, FinishReason.ABORTED)
            self._service.ledger.record(row)
            self._show(row, account)

    def _show(self, row: LedgerRow, account: Account) -> None:
        if self._service.recent is not None:
            self._service.recent.add(row, account.case)

    def _row(self, job: Job, bill: Bill, account: Account, finish: str) -> LedgerRow:
        report = redacted(account.report) if self._service.settings.redact else account.report
        return self._booking(job).row(bill, report, self._service.clock, finish)

    def _booking(self, job: Job) -> Booking:
        admission = admission_of(self._scope)
        key_id = admission.identity.key_id if admission is not None else ""
        return booking_of(self._scope, self._record, job.turns[0], key_id)

    def _headers(self, job: Job, account: Account) -> list[tuple[bytes, bytes]]:
        kept = strategy_headers(self._strategy, account.usage().dropped_tokens)
        return [*ignored_header(job.ignored), *job.headers, *account.headers(), *kept]

    def _told(self, error: Exception, shower: Shower) -> bytes:
        problem = problem_of(error, self._record.request_id)
        self._record.error = problem.code or problem.kind
        if problem.kind == "server_error":
            self._service.log.error("stream failed", request_id=self._record.request_id, exc_info=error)
        return shower.fail(problem)


def tenant_of(scope: Scope) -> str:
    """Whose caches a request uses: its key's tenant. Where nobody asks for keys, a digest of the
    credential keeps clients with different ones apart."""
    admission = admission_of(scope)
    if admission is not None:
        return admission.identity.tenant
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
