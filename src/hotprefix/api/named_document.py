"""What a named cache is made of, as a client writes it, and the tokens it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.chat import conversation_of
from hotprefix.api.chat_request import ChatMessage, ToolDefinition, Variables
from hotprefix.api.errors import invalid_request
from hotprefix.api.fields import Wire
from hotprefix.api.markers import MarkerReader
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.service import Service
from hotprefix.api.wishes import Wishes, wishing
from hotprefix.base.errors import InvalidRequest
from hotprefix.modes.named_cache import Definition
from hotprefix.modes.turn import TurnRequest
from hotprefix.prompt.spans import SpannedPrompt

DEFAULT_TTL = 3600.0
_CONTENT = ("messages", "tools", "chat_template_kwargs", "text")
Seconds = Annotated[float, Field(gt=0)]


class Lifetime(Wire):
    """`ttl` in seconds, or `pin` for no end. Neither keeps what there is."""

    ttl: Seconds | None = None
    pin: bool | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if self.ttl is not None and self.pin:
            raise PydanticCustomError(
                "either", "a pinned cache does not expire; give one of both", {"field": "ttl"}
            )
        return self

    def chosen(self, before: float | None) -> float | None:
        """Seconds, or None for no end; `before` is what it was."""
        if self.pin:
            return None
        if self.ttl is not None:
            return self.ttl
        return DEFAULT_TTL if self.pin is False and before is None else before


class CacheRequest(Lifetime):
    """A cache to make: a name, and either messages (with tools) or a text."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    model: str | None = None
    messages: Annotated[list[ChatMessage], Field(fail_fast=True, min_length=1, max_length=10_000)] | None = (
        None
    )
    tools: Annotated[list[ToolDefinition], Field(fail_fast=True, max_length=128)] | None = None
    chat_template_kwargs: Variables | None = None
    text: Annotated[str, Field(min_length=1)] | None = None

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        if (self.text is None) == (self.messages is None):
            raise PydanticCustomError("either", "give either 'messages' or 'text'", {"field": "messages"})
        if self.text is not None and (self.tools or self.chat_template_kwargs):
            raise PydanticCustomError("no_tools", "a text has no tools and no template", {"field": "text"})
        return self


def parse_cache(document: dict[str, Any]) -> CacheRequest:
    """Raises `InvalidRequest` that names the field at fault."""
    try:
        return CacheRequest.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None


def parse_lifetime(document: dict[str, Any]) -> Lifetime:
    """Raises `InvalidRequest` that names the field at fault."""
    try:
        return Lifetime.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None


def content_of(document: dict[str, Any]) -> dict[str, Any]:
    """The part of a checked request that is kept: what the prefix is made of."""
    return {key: document[key] for key in _CONTENT if document.get(key) is not None}


class Renderer:
    """Makes tokens of definitions, as requests of the same tenant would: a `Render` of named caches."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._prompting = Prompting(service)

    async def __call__(self, definition: Definition) -> Sequence[int]:
        request = parse_cache({"name": definition.name, **definition.document})
        return await self.tokens(request, definition.tenant)

    async def tokens(self, request: CacheRequest, tenant: str) -> Sequence[int]:
        """The token ids of `turn`."""
        return (await self.turn(request, tenant)).prompt.token_ids

    async def turn(self, request: CacheRequest, tenant: str) -> TurnRequest:
        """The prompt up to the end of its last content block, so that any continuation has it all.

        Pre-processing is the server's own. Raises `RequestError`.
        """
        if request.model is not None:
            require_model(self._service.engine.model, request.model)
        with wishing(Wishes()):
            turn = await (self._text(request, tenant) if request.text else self._messages(request, tenant))
        self._prompting.require_fit(turn.prompt.token_ids, 1, "text" if request.text else "messages")
        return turn

    async def _text(self, request: CacheRequest, tenant: str) -> TurnRequest:
        return await self._prompting.raw_turn(request.text or "", "text", tenant)

    async def _messages(self, request: CacheRequest, tenant: str) -> TurnRequest:
        reader = MarkerReader(self._service.profile)
        conversation = conversation_of(request.messages or (), request.tools, reader)
        tools = [tool.plain() for tool in request.tools or ()]
        turn = await self._prompting.turn(conversation, tools, request.chat_template_kwargs or {}, tenant)
        if not any(span.block.text for span in turn.prompt.spans):
            raise InvalidRequest("The messages have no text to keep.", param="messages")
        return replace(turn, prompt=_cut(turn.prompt))


def _cut(prompt: SpannedPrompt) -> SpannedPrompt:
    """Without what stands behind the last content block."""
    end = prompt.spans[-1]
    return SpannedPrompt(prompt.text[: end.end_char], prompt.token_ids[: end.end_token], prompt.spans)
