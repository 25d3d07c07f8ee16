"""`POST /v1/responses`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.chat_answer import PlainReader, Reader
from hotprefix.api.errors import Problem, problem_of
from hotprefix.api.fields import with_defaults
from hotprefix.api.generation import Generation, Job, tenant_of
from hotprefix.api.logprobs import chat_logprobs
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.record import record_of
from hotprefix.api.respond import end_events, start_events
from hotprefix.api.responses.dialect import Dialect
from hotprefix.api.responses.draft import Draft
from hotprefix.api.responses.fitting import Fitting, truncated_header
from hotprefix.api.responses.items import new_id
from hotprefix.api.responses.output import LogprobsOf, Output
from hotprefix.api.responses.request import ResponsesRequest, parse_responses
from hotprefix.api.responses.shower import ResponsesShower
from hotprefix.api.responses.transcript import Transcript
from hotprefix.api.responses.warn import marker_warnings
from hotprefix.api.scenes import Place, place_of
from hotprefix.api.service import Service
from hotprefix.api.session_header import wants_session
from hotprefix.api.tool_reader import ToolReader
from hotprefix.base.errors import InvalidRequest, RequestError, Unavailable
from hotprefix.modes.turn import TurnRequest
from hotprefix.sessions.response import StoredResponse
from hotprefix.sessions.window import Cut, Window

_MOST_TURNS = 10_000
_DAY = 86_400.0
_DEFAULT_DAYS = 7
_MARGIN = 64
"""The context divided by this: answers by the ids they were drawn as may be longer than when measured."""


class CreateEndpoint:
    """An ASGI app."""

    def __init__(self, service: Service, dialect: Dialect) -> None:
        self._service = service
        self._dialect = dialect
        self._prompting = Prompting(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            document = await read_json(scope, receive, self._service.settings)
            try:
                await self._answer(document, scope, receive, send)
            except (RequestError, Unavailable) as error:
                if not (self._dialect.tells_errors_in_streams and document.get("stream") is True):
                    raise
                await self._tell_in_stream(error, scope, send)

    async def _answer(self, document: dict[str, Any], scope: Scope, receive: Receive, send: Send) -> None:
        warnings: list[str] = []
        request = parse_responses(self._dialect.lenient(document, warnings))
        warnings += marker_warnings(request)
        self._require(request)
        place = place_of(scope, tenant_of(scope), request.session_id, self._service.settings)
        session = wants_session(scope, self._service.profile, warnings)
        chain = await self._chain(request, place)
        turn, left_out = await self._turn(request, chain, place, warnings)
        turn = replace(place.settle(turn), session=session)
        draft = Draft(new_id("resp"), int(self._service.clock.wall()), request, self._dialect, left_out)
        output = Output(self._reader(request), self._logprobs(request))
        keeper = _Keeper(self._service, draft, output, place.tenant, chain)
        shower = ResponsesShower(draft, output, keeper.keep, self._service.clock)
        sampling = with_defaults(request.sampling(), self._service.engine.model, request)
        job = Job(
            request.model, [turn], sampling, 1, request.ignored(), truncated_header(left_out),
            shower.settled,
        )  # fmt: skip
        generation = Generation(self._service, scope, receive, send)
        await (generation.stream(job, shower) if request.stream else generation.whole(job, shower))

    def _require(self, request: ResponsesRequest) -> None:
        require_model(self._service.engine.model, request.model)
        least = self._dialect.least_output_tokens
        if request.max_output_tokens is not None and request.max_output_tokens < least:
            raise InvalidRequest(
                f"Invalid value for 'max_output_tokens': input should be greater than or equal to {least} "
                f"(got {request.max_output_tokens}).",
                param="max_output_tokens",
            )

    async def _chain(self, request: ResponsesRequest, place: Place) -> Sequence[StoredResponse]:
        wanted = request.previous_response_id
        if wanted is None:
            return ()
        chain = await self._service.sessions.chain(place.tenant, wanted)
        if not chain.responses:
            raise self._dialect.broken_chain(wanted, chain)
        if chain.responses[-1].depth >= _MOST_TURNS:
            raise InvalidRequest(
                f"The chain of '{wanted[:100]}' has {_MOST_TURNS} turns, the most; begin a new one.",
                param="previous_response_id",
            )
        return chain.responses

    async def _turn(
        self, request: ResponsesRequest, chain: Sequence[StoredResponse], place: Place, warnings: list[str]
    ) -> tuple[TurnRequest, Cut]:
        transcript = Transcript()
        if request.instructions:
            transcript.instruct(request.instructions)
        for stored in chain:
            transcript.add_stored(stored)
        transcript.add_items(request.new_items, "input")
        if not transcript.entries:
            raise InvalidRequest(
                "'input' has nothing to answer: only reasoning, which is dropped.", param="input"
            )
        fitting = Fitting(self._prompting, request.offered_tools, request.variables, place.cache_tenant)
        left_out = Cut()
        if (request.truncation or self._dialect.truncation) == "disabled":
            turn = await fitting.whole(transcript, warnings)
        else:
            turn, left_out = await fitting.cut(transcript, warnings, self._window(request))
        self._prompting.require_fit(turn.prompt.token_ids, request.max_output_tokens, "input")
        return turn, left_out

    def _window(self, request: ResponsesRequest) -> Window:
        context = self._prompting.longest
        answer = request.max_output_tokens or 1
        return Window.of(context, self._dialect.fullness, answer, margin=context // _MARGIN)

    def _reader(self, request: ResponsesRequest) -> Reader:
        if not request.offered_tools:
            return PlainReader()
        return ToolReader.one_call() if request.parallel_tool_calls is False else ToolReader()

    def _logprobs(self, request: ResponsesRequest) -> LogprobsOf:
        if request.wanted_logprobs is None:
            return lambda entries: []
        tokenizer = self._service.engine.model.tokenizer
        return lambda entries: list(chat_logprobs(entries, tokenizer)["content"])

    async def _tell_in_stream(self, error: Exception, scope: Scope, send: Send) -> None:
        """Whatever is raised here comes before the first event: later errors end the stream themselves."""
        record = record_of(scope)
        problem = problem_of(error, record.request_id)
        record.error = problem.code or problem.kind
        await start_events(send, problem.headers)
        await end_events(send, self._failed(problem))

    def _failed(self, problem: Problem) -> bytes:
        response = {
            "id": new_id("resp"),
            "object": "response",
            "created_at": int(self._service.clock.wall()),
            "status": "failed",
            "error": self._dialect.failure(problem),
            "output": [],
            "usage": None,
        }
        return self._dialect.event({"type": "response.failed", "sequence_number": 0, "response": response})


class _Keeper:
    """Stores one response, if its request wants that."""

    def __init__(
        self, service: Service, draft: Draft, output: Output, tenant: str, chain: Sequence[StoredResponse]
    ) -> None:
        self._service = service
        self._draft = draft
        self._output = output
        self._tenant = tenant
        self._depth = chain[-1].depth + 1 if chain else 1

    async def keep(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document as it is to be sent. Raises `SessionsUnavailable`."""
        draft, request, rules = self._draft, self._draft.request, self._service.profile.session
        if not request.is_stored:
            return document
        days = _DEFAULT_DAYS if rules is None else rules.retention_days
        stored = await self._service.sessions.save(
            StoredResponse(
                response_id=draft.response_id,
                tenant=self._tenant,
                model=request.model,
                created=draft.created,
                retention=days * _DAY,
                document=document,
                input_items=request.new_items,
                answer=self._output.drawn,
                previous_id=request.previous_response_id,
                depth=self._depth,
            )
        )
        return stored.document
