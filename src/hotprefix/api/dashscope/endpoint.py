"""`POST /api/v1/services/aigc/text-generation/generation` and its multimodal sister."""

from __future__ import annotations

from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.chat import grammar_of, offered_tools
from hotprefix.api.chat_answer import ChatAnswer, PlainReader, Reader, no_logprobs, shown_logprobs
from hotprefix.api.dashscope.conversation import native_conversation
from hotprefix.api.dashscope.request import NativeParameters, NativeRequest, parse_native
from hotprefix.api.dashscope.shower import (
    IncrementalShower,
    NativeShower,
    Shape,
    message_shape,
    parts_shape,
    text_shape,
)
from hotprefix.api.fields import with_defaults
from hotprefix.api.generation import Generation, Job, tenant_of
from hotprefix.api.markers import MarkerReader
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.record import record_of
from hotprefix.api.service import Service
from hotprefix.api.tool_reader import ToolReader
from hotprefix.base.errors import InvalidRequest

ShapeOf = Callable[[NativeParameters], Shape]


def text_route(parameters: NativeParameters) -> Shape:
    """Text is the documented default. It has no room for tool calls nor for several choices."""
    n = parameters.n or 1
    if parameters.result_format == "message" or parameters.tools or n > 1:
        return message_shape(n)
    return text_shape


def multimodal_route(parameters: NativeParameters) -> Shape:
    """Always messages, with content in parts."""
    return parts_shape(parameters.n or 1)


class NativeEndpoint:
    """An ASGI app; `shape_of` is how its route shows answers."""

    def __init__(self, service: Service, shape_of: ShapeOf) -> None:
        self._service = service
        self._shape_of = shape_of
        self._prompting = Prompting(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            request = parse_native(await read_json(scope, receive, self._service.settings))
            job = await self._job(request, tenant_of(scope))
            generation = Generation(self._service, scope, receive, send)
            parameters = request.chosen
            request_id = record_of(scope).request_id
            new = IncrementalShower if parameters.incremental_output else NativeShower
            shower = new(self._answer(parameters), self._shape_of(parameters), request_id)
            if wants_events(Headers(scope=scope)):
                await generation.stream(job, shower)
            else:
                await generation.whole(job, shower)

    async def _job(self, request: NativeRequest, tenant: str) -> Job:
        model = self._service.engine.model
        require_model(model, request.model)
        parameters = request.chosen
        n, limit = parameters.n or 1, self._service.settings.max_choices
        if n > limit:
            raise InvalidRequest(f"'n' is over the limit of {limit}.", param="parameters.n")
        tools = offered_tools(parameters)
        sampling = parameters.sampling(model.tokenizer, grammar_of(parameters, tools))
        sampling = with_defaults(sampling, model, parameters)
        conversation = native_conversation(request, MarkerReader(self._service.profile))
        turn = await self._prompting.turn(conversation, tools, parameters.variables, tenant)
        self._prompting.require_fit(turn.prompt.token_ids, sampling.max_tokens, "input.messages")
        return Job(request.model, [turn], sampling, n, request.ignored())

    def _answer(self, parameters: NativeParameters) -> ChatAnswer:
        tokenizer = self._service.engine.model.tokenizer
        reader: Callable[[], Reader] = PlainReader
        if offered_tools(parameters):
            reader = ToolReader.one_call if parameters.parallel_tool_calls is False else ToolReader
        return ChatAnswer(reader, shown_logprobs(tokenizer) if parameters.logprobs else no_logprobs)


def wants_events(headers: Headers) -> bool:
    """Whether the answer is to be a stream: a header says so, not the body."""
    wanted = headers.get("x-dashscope-sse", "").strip().lower()
    return wanted == "enable" or "text/event-stream" in headers.get("accept", "").lower()
