"""A recorded request → the prompt that the model reads, with its blocks and markers, for all four dialects.

It goes through the server's own parsers and conversations, so what is said of a file is what the server
would say of the request.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson
from pydantic import ValidationError

from hotprefix.api.anthropic.conversation import anthropic_conversation
from hotprefix.api.anthropic.markers import reader_for
from hotprefix.api.anthropic.request import Prompted, parse
from hotprefix.api.anthropic.rules import without_order
from hotprefix.api.chat import conversation_of
from hotprefix.api.chat_request import ToolDefinition, parse_chat
from hotprefix.api.conversation import Conversation
from hotprefix.api.dashscope.conversation import native_conversation
from hotprefix.api.dashscope.request import parse_native
from hotprefix.api.markers import MarkerReader
from hotprefix.api.responses.request import parse_responses
from hotprefix.api.responses.tools import FunctionTool
from hotprefix.api.responses.transcript import Transcript
from hotprefix.api.session_header import SESSION_HEADER
from hotprefix.base.errors import HotprefixError, RequestError
from hotprefix.doctor.chains import Chains
from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.estimate import Layout, Prompts, layout_of
from hotprefix.doctor.lenient import Reduction
from hotprefix.doctor.recorded import Recorded
from hotprefix.doctor.rules_for import rules_for
from hotprefix.doctor.said import said
from hotprefix.doctor.text_model import TextModel
from hotprefix.modes.turn import TurnRequest
from hotprefix.profiles.loader import ProfileBook
from hotprefix.profiles.profile import Profile
from hotprefix.prompt.spans import SpannedPrompt
from hotprefix.sessions.response import StoredResponse

_LONE_CALL = "the result of a call that this file does not hold is read as the user's"


class UnrenderableRequest(HotprefixError):
    """A recorded request is no request that an API would take; the message names its place."""


@dataclass(frozen=True, slots=True)
class Rendered:
    """A request as the model reads it. `profile` are the rules it is judged by, `parameters` the template's
    variables, `is_session` whether it asks for the session cache, `marks` where the body has cache
    markers (also those without effect); `notes` say what was read in another way than it was written.
    `answer` is what the model said, if that was recorded, with its tokens."""

    recorded: Recorded
    profile: Profile
    conversation: Conversation
    tools: tuple[Mapping[str, Any], ...]
    parameters: Mapping[str, str]
    prompt: SpannedPrompt
    is_session: bool
    marks: tuple[str, ...]
    notes: tuple[str, ...]
    answer: tuple[str, tuple[int, ...]] = ("", ())

    @property
    def turn(self) -> TurnRequest:
        """As the caches take it."""
        profile = self.profile
        if self.recorded.dialect is Dialect.ANTHROPIC:
            profile = without_order(profile)
        return TurnRequest(
            tenant="",
            model=self.recorded.model,
            profile=profile,
            prompt=self.prompt,
            markers=tuple(self.conversation.markers),
            session=self.is_session,
            parameters=dict(self.parameters),
            scene=self.recorded.session,
            warnings=tuple(self.conversation.warnings),
            tools=self.tools,
        )


@dataclass(frozen=True, slots=True)
class _Talk:
    """What a dialect's body comes down to."""

    conversation: Conversation
    tools: tuple[Mapping[str, Any], ...]
    variables: Mapping[str, Any]
    notes: tuple[str, ...] = ()


class Renderer:
    """Renders requests one after the other; it remembers Responses, to follow `previous_response_id`.

    `profile` names the rules for all; without it each request has those of its vendor.
    """

    def __init__(self, model: TextModel, book: ProfileBook, profile: str | None = None) -> None:
        self.model = model
        self._book = book
        self._chosen = profile
        self._prompts: dict[Layout, Prompts] = {}
        self._chains = Chains()

    def render(self, recorded: Recorded) -> Rendered:
        """Raises `UnrenderableRequest`, and `UnknownProfile`."""
        profile = rules_for(recorded, self._book, self._chosen)
        if _has_halves(recorded.body):
            told = "it has a lone surrogate (half of a character), which is no Unicode and no JSON"
            raise UnrenderableRequest(f"{recorded.place}: this request can't be read: {told}")
        try:
            return self._render(recorded, profile)
        except (RequestError, RecursionError) as error:
            told = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise UnrenderableRequest(f"{recorded.place}: this request can't be read: {told}") from error

    def _render(self, recorded: Recorded, profile: Profile) -> Rendered:
        reduction = Reduction()
        talk = self._talk(recorded, profile, reduction)
        prompts, conversation = self._prompts_for(profile), talk.conversation
        render = prompts.continued if conversation.is_begun else prompts.spanned
        prompt = render(conversation.messages, conversation.blocks, talk.tools, talk.variables)
        return Rendered(
            recorded,
            profile,
            conversation,
            talk.tools,
            {name: repr(value) for name, value in talk.variables.items()},
            prompt,
            _wants_session(recorded, profile),
            tuple(_marks(recorded.body)),
            (*reduction.notes, *talk.notes),
            self._answer(recorded),
        )

    def _answer(self, recorded: Recorded) -> tuple[str, tuple[int, ...]]:
        text = said(recorded)
        return (text, self.model.token_ids(text)) if text else ("", ())

    def _talk(self, recorded: Recorded, profile: Profile, reduction: Reduction) -> _Talk:
        body = recorded.body
        match recorded.dialect:
            case Dialect.CHAT:
                chat = parse_chat(reduction.chat(body))
                talk = conversation_of(chat.messages, None, MarkerReader(profile))
                return _Talk(talk, _chat_tools(body), chat.variables)
            case Dialect.DASHSCOPE:
                native = parse_native(reduction.native(body))
                talk = native_conversation(native, MarkerReader(profile))
                given = body.get("parameters")
                return _Talk(
                    talk, _chat_tools(given if isinstance(given, Mapping) else {}), native.chosen.variables
                )
            case Dialect.ANTHROPIC:
                prompted = parse(Prompted, reduction.anthropic(body))
                talk = anthropic_conversation(prompted, profile, reader_for(profile))
                return _Talk(talk, tuple(prompted.plain_tools), prompted.variables)
            case Dialect.RESPONSES:
                return self._responses(recorded, reduction)

    def _responses(self, recorded: Recorded, reduction: Reduction) -> _Talk:
        request = parse_responses(reduction.responses(recorded.body))
        previous = recorded.body.get("previous_response_id")
        turns: Sequence[StoredResponse] = ()
        notes: tuple[str, ...] = ()
        if isinstance(previous, str):
            turns, is_whole = self._chains.behind(previous)
            if not is_whole:
                notes = (f"the turns before {previous[:100]} are not in this file, and so not in the prompt",)
        transcript = Transcript()
        if request.instructions:
            transcript.instruct(request.instructions)
        for turn in turns:
            transcript.add_stored(turn)
        items = _with_calls(request.new_items, turns)
        notes += (_LONE_CALL,) if len(items) and items != request.new_items else ()
        transcript.add_items(items, "input")
        self._remember(recorded, items, previous if isinstance(previous, str) else None, reduction)
        return _Talk(
            transcript.conversation(frozenset(), ()),
            _response_tools(recorded.body),
            request.variables,
            notes,
        )

    def _remember(
        self, recorded: Recorded, items: list[dict[str, Any]], previous: str | None, reduction: Reduction
    ) -> None:
        response = recorded.response or {}
        found, output = response.get("id"), response.get("output")
        if not isinstance(found, str) or not isinstance(output, list) or _has_halves(output):
            return
        try:
            told = parse_responses({"model": "any", "input": reduction.items(output)}) if output else None
        except RequestError:
            return  # what goes on from it can't be put together, which is told there
        document = {"output": told.new_items if told is not None else []}
        turn = StoredResponse(found, "", recorded.model, recorded.at or 0.0, 0.0, document, items)
        self._chains.remember(replace(turn, previous_id=previous))

    def _prompts_for(self, profile: Profile) -> Prompts:
        layout = layout_of(profile.vendor)
        if layout not in self._prompts:
            self._prompts[layout] = self.model.prompts(layout)
        return self._prompts[layout]


def _has_halves(value: Any) -> bool:
    """Whether a lone surrogate is in it."""
    try:
        orjson.dumps(value)
    except TypeError as error:
        return "surrogates" in str(error)
    return False


def _wants_session(recorded: Recorded, profile: Profile) -> bool:
    if recorded.dialect is not Dialect.RESPONSES or profile.session is None:
        return False
    return recorded.headers.get(SESSION_HEADER, "").strip().lower() == "enable"


def _with_calls(items: Sequence[dict[str, Any]], turns: Sequence[StoredResponse]) -> list[dict[str, Any]]:
    """The items, but results of calls that nobody made become what the user says."""
    earlier = [item for turn in turns for item in (*turn.input_items, *turn.document["output"])]
    calls = {item["call_id"] for item in (*earlier, *items) if item["type"] == "function_call"}
    return [
        item
        if item["type"] != "function_call_output" or item["call_id"] in calls
        else {"type": "message", "role": "user", "content": item["output"]}
        for item in items
    ]


def _chat_tools(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """The tools as the template gets them; with `tool_choice` "none" it gets none."""
    tools = body.get("tools")
    if not isinstance(tools, list):
        legacy = body.get("functions")
        tools = [{"type": "function", "function": f} for f in legacy] if isinstance(legacy, list) else []
    if body.get("tool_choice") == "none":
        return ()
    return tuple(_plain(tool, ToolDefinition) for tool in tools if isinstance(tool, Mapping))


def _response_tools(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    tools = body.get("tools")
    if not isinstance(tools, list) or body.get("tool_choice") == "none":
        return ()
    return tuple(_plain(tool, FunctionTool) for tool in tools if isinstance(tool, Mapping))


def _plain(tool: Mapping[str, Any], kind: type[ToolDefinition] | type[FunctionTool]) -> Mapping[str, Any]:
    """As the server gives it to the template; what is no function stays as it is, without its marker."""
    try:
        return kind.model_validate(dict(tool)).plain()
    except ValidationError:
        return {key: value for key, value in tool.items() if key != "cache_control"}


def _marks(value: Any, path: str = "") -> list[str]:
    """JSON paths of all cache markers in a body."""
    if isinstance(value, Mapping):
        own = [f"{path}.cache_control".lstrip(".")] if value.get("cache_control") is not None else []
        return own + [
            mark
            for key, inner in value.items()
            if key != "cache_control" and isinstance(inner, Mapping | list)
            for mark in _marks(inner, f"{path}.{key}")
        ]
    if isinstance(value, list):
        return [mark for at, inner in enumerate(value) for mark in _marks(inner, f"{path}[{at}]")]
    return []
