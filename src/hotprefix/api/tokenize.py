"""`POST /tokenize`: what a prompt becomes, without running it."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError
from starlette.types import Receive, Scope, Send

from hotprefix.api.body import read_json
from hotprefix.api.chat_request import ChatMessage, ToolDefinition, Variables
from hotprefix.api.errors import invalid_request
from hotprefix.api.fields import Wire
from hotprefix.api.generation import ignored_header, tenant_of
from hotprefix.api.prompting import Prompting, require_model
from hotprefix.api.respond import send_json
from hotprefix.api.service import Service


class TokenizeRequest(Wire):
    """Either a raw `prompt` or `messages` with what belongs to them."""

    model: str | None = None
    prompt: str | None = None
    messages: Annotated[list[ChatMessage], Field(fail_fast=True, min_length=1)] | None = None
    tools: Annotated[list[ToolDefinition], Field(fail_fast=True)] | None = None
    chat_template_kwargs: Variables | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> TokenizeRequest:
        if (self.prompt is None) == (self.messages is None):
            raise PydanticCustomError("either", "give either 'prompt' or 'messages'", {"field": "prompt"})
        return self


class TokenizeEndpoint:
    """An ASGI app."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._prompting = Prompting(service)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = _parsed(await read_json(scope, receive, self._service.settings))
        model, tenant = self._service.engine.model, tenant_of(scope)
        if request.model is not None:
            require_model(model, request.model)
        if request.messages is not None:
            messages = [message.plain() for message in request.messages]
            tools = [tool.plain() for tool in request.tools or ()]
            variables = request.chat_template_kwargs or {}
            ids = await self._prompting.chat(messages, tools, variables, tenant)
        else:
            ids = await self._prompting.text(request.prompt or "", "prompt", tenant)
        body = {"count": len(ids), "max_model_len": model.context_length, "tokens": ids}
        await send_json(send, 200, body, ignored_header(list(request.model_extra or {})))


def _parsed(document: dict[str, Any]) -> TokenizeRequest:
    try:
        return TokenizeRequest.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None
