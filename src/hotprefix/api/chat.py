"""`POST /v1/chat/completions`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import orjson
from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.chat_answer import ChatAnswer, PlainReader, Reader, no_logprobs, shown_logprobs
from hotprefix.api.chat_request import (
    ChatFields,
    ChatMessage,
    ChatRequest,
    NamedTool,
    ToolDefinition,
    parse_chat,
)
from hotprefix.api.conversation import Conversation
from hotprefix.api.frame import CHAT, frame_of
from hotprefix.api.generation import Generation, Job, tenant_of
from hotprefix.api.markers import MarkerReader
from hotprefix.api.openai_shower import shower_of
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.record import record_of
from hotprefix.api.scenes import place_of
from hotprefix.api.service import Service
from hotprefix.api.session_header import warn_of_session
from hotprefix.api.tool_reader import ToolReader
from hotprefix.api.wishes import wish_strategy
from hotprefix.base.errors import InvalidRequest
from hotprefix.engine.request import Grammar, GrammarKind
from hotprefix.prompt.spans import ContentBlock
from hotprefix.prompt.tools import tool_call_lark

_MOST_CALLS = 8
"""In one answer of a model that has to call."""


class ChatEndpoint:
    """An ASGI app."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._prompting = Prompting(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._service.inflight.answering():
            request = parse_chat(await read_json(scope, receive, self._service.settings))
            wish_strategy(request.kv_strategy)
            job = await self._job(request, scope)
            generation = Generation(self._service, scope, receive, send)
            frame = frame_of(CHAT, self._service, record_of(scope), request.model)
            shower = shower_of(self._answer(request), frame, include_usage=request.include_usage)
            if request.stream:
                await generation.stream(job, shower)
            else:
                await generation.whole(job, shower)

    async def _job(self, request: ChatRequest, scope: Scope) -> Job:
        model = self._service.engine.model
        require_model(model, request.model)
        if (request.n or 1) > self._service.settings.max_choices:
            raise InvalidRequest(f"'n' is over the limit of {self._service.settings.max_choices}.", param="n")
        tools = offered_tools(request)
        sampling = request.sampling(
            model,
            top_logprobs=request.wanted_logprobs,
            grammar=grammar_of(request, tools),
        )
        conversation = conversation_of(request.messages, request.tools, MarkerReader(self._service.profile))
        conversation.warnings += warn_of_session(scope)
        place = place_of(scope, tenant_of(scope), request.session_id, self._service.settings)
        turn = await self._prompting.turn(conversation, tools, request.variables, place.cache_tenant)
        self._prompting.require_fit(turn.prompt.token_ids, sampling.max_tokens, "messages")
        return Job(request.model, [place.settle(turn)], sampling, request.n or 1, request.ignored())

    def _answer(self, request: ChatRequest) -> ChatAnswer:
        tokenizer = self._service.engine.model.tokenizer
        reader: Callable[[], Reader] = PlainReader
        if offered_tools(request):
            reader = ToolReader.one_call if request.parallel_tool_calls is False else ToolReader
        return ChatAnswer(reader, shown_logprobs(tokenizer) if request.logprobs else no_logprobs)


def conversation_of(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolDefinition] | None,
    reader: MarkerReader,
    *,
    root: str = "messages",
    tools_root: str = "tools",
) -> Conversation:
    """The messages with their content blocks and markers. The roots are where both stand in the body."""
    conversation = Conversation(warnings=reader.warnings)
    for number, message in enumerate(messages):
        place = f"{root}[{number}]"
        plain = message.plain()
        reader.misplaced(
            message.cache_control, f"{place}.cache_control", "put it into an element of a content array"
        )
        blocks = [
            (
                ContentBlock(f"{place}.{path}", plain["role"], text),
                reader.ttl(mark, f"{place}.{path}.cache_control"),
            )
            for path, text, mark in message.parts
        ]
        conversation.add(plain, blocks)
    for number, tool in enumerate(tools or ()):
        mark = (tool.model_extra or {}).get("cache_control")
        reader.misplaced(
            mark, f"{tools_root}[{number}].cache_control", "tools are part of the system message"
        )
    return conversation


def offered_tools(request: ChatFields) -> list[dict[str, Any]]:
    """The tools that the model gets to see; with `tool_choice` "none" it sees none."""
    return [] if request.tool_choice == "none" else [tool.plain() for tool in request.tools or ()]


def grammar_of(request: ChatFields, tools: Sequence[dict[str, Any]]) -> Grammar | None:
    """What the answer has to look like. A tool call that is required goes before a format."""
    choice = request.tool_choice
    if isinstance(choice, NamedTool):
        named = [tool for tool in tools if tool["function"]["name"] == choice.function.name]
        return Grammar(GrammarKind.LARK, tool_call_lark(named))
    if choice == "required":
        most_calls = 1 if request.parallel_tool_calls is False else _MOST_CALLS
        return Grammar(GrammarKind.LARK, tool_call_lark(tools, most_calls))
    wanted = request.response_format
    if wanted is None or wanted.type == "text":
        return None
    if wanted.json_schema is None or wanted.type == "json_object":
        return Grammar(GrammarKind.JSON_OBJECT)
    return Grammar(GrammarKind.JSON_SCHEMA, orjson.dumps(wanted.json_schema.schema_).decode())
