"""`POST /v1/messages`, and counting its tokens."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace

from starlette.types import Receive, Scope, Send

from hotprefix.api.anthropic.conversation import anthropic_conversation
from hotprefix.api.anthropic.markers import reader_for
from hotprefix.api.anthropic.request import MessagesRequest, Prompted, parse
from hotprefix.api.anthropic.rules import without_order
from hotprefix.api.anthropic.shower import MessageHead, MessageShower, WarmShower
from hotprefix.api.body import read_json
from hotprefix.api.chat_answer import PlainReader, Reader
from hotprefix.api.envelopes import request_id_header
from hotprefix.api.fields import with_defaults
from hotprefix.api.generation import Generation, Job, ignored_header, tenant_of
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.record import record_of
from hotprefix.api.respond import send_json
from hotprefix.api.service import Service
from hotprefix.api.tool_reader import ToolReader
from hotprefix.modes.turn import TurnRequest
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.profile import Profile

Rules = Callable[[Profile, ProfileBook], Profile]


class Turns:
    """Makes turns out of requests, under the profile that `rules` choose."""

    def __init__(self, service: Service, rules: Rules) -> None:
        self._service = service
        self._profile = rules(service.profile, service.profiles)
        self.prompting = Prompting(service)

    async def turn(self, request: Prompted, tenant: str) -> TurnRequest:
        """Raises `ModelNotFound`, `InvalidRequest` or `ContextLengthExceeded`."""
        require_model(self._service.engine.model, request.model)
        conversation = anthropic_conversation(request, self._profile, reader_for(self._profile))
        turn = await self.prompting.turn(conversation, request.plain_tools, request.variables, tenant)
        return replace(turn, profile=without_order(self._profile))


class MessagesEndpoint:
    """An ASGI app."""

    def __init__(self, service: Service, rules: Rules) -> None:
        self._service = service
        self._turns = Turns(service, rules)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            request = parse(MessagesRequest, await read_json(scope, receive, self._service.settings))
            turn = await self._turns.turn(request, tenant_of(scope))
            generation = Generation(self._service, scope, receive, send)
            request_id = record_of(scope).request_id
            job = self._job(request, turn, request_id)
            shower = self._shower(request, job, request_id)
            if request.stream:
                await generation.stream(job, shower)
            else:
                await generation.whole(job, shower)

    def _job(self, request: MessagesRequest, turn: TurnRequest, request_id: str) -> Job:
        """An answer for which the context has too little room is cut there, not refused."""
        ids = turn.prompt.token_ids
        self._turns.prompting.require_fit(ids, None, "messages")
        room = self._turns.prompting.longest - len(ids)
        most = max(request.max_tokens, 1)
        return Job(
            request.model,
            [turn],
            with_defaults(
                request.sampling(most if most <= room else None), self._service.engine.model, request
            ),
            1,
            request.ignored(),
            request_id_header(request_id),
            prefill_only=request.max_tokens == 0,
        )

    def _shower(self, request: MessagesRequest, job: Job, request_id: str) -> MessageShower:
        reason = "max_tokens" if job.sampling.max_tokens is not None else "model_context_window_exceeded"
        head = MessageHead(f"msg_{uuid.uuid4().hex[:24]}", request.model, request_id, reason)
        if job.prefill_only:
            return WarmShower(PlainReader(), head)
        return MessageShower(_reader(request), head)


class CountEndpoint:
    """An ASGI app: how many tokens a request's prompt has, without running it."""

    def __init__(self, service: Service, rules: Rules) -> None:
        self._service = service
        self._turns = Turns(service, rules)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = parse(Prompted, await read_json(scope, receive, self._service.settings))
        turn = await self._turns.turn(request, tenant_of(scope))
        headers = [
            *request_id_header(record_of(scope).request_id),
            *ignored_header(list(request.model_extra or {})),
        ]
        await send_json(send, 200, {"input_tokens": len(turn.prompt.token_ids)}, headers)


def _reader(request: MessagesRequest) -> Reader:
    if not request.tools:
        return PlainReader()
    most = request.most_calls
    return ToolReader() if most is None else ToolReader(most)
