"""The body of `POST /v1/chat/completions`, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.errors import invalid_request
from hotprefix.api.fields import FreeObject, GenerationFields, Wire, shallow, unsupported

_MOST_MESSAGES = 10_000
_RESERVED_VARIABLES = frozenset(
    {"messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"}
)


class TextPart(Wire):
    """A piece of a message; unknown keys are left alone."""

    type: Any
    text: str
    cache_control: Any = None

    @model_validator(mode="before")
    @classmethod
    def _only_text(cls, value: Any) -> Any:
        if isinstance(value, dict) and (kind := value.get("type")) not in ("text", "input_text"):
            shown = kind[:40] if isinstance(kind, str) else "missing"
            raise PydanticCustomError(
                "unsupported",
                "a part of type {kind} is not supported, only text is",
                {"kind": shown, "field": "type"},
            )
        return value


def _text_or_parts(value: Any, parts: Callable[[Any], Any]) -> str | tuple[TextPart, ...]:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("content_type", "input should be a string or an array of text parts")
    return tuple(parts(value))


Content = Annotated[list[TextPart], Field(fail_fast=True), WrapValidator(_text_or_parts)]
"""A string or a tuple of `TextPart` once validated."""


class CalledFunction(Wire):
    name: Annotated[str, Field(min_length=1, max_length=256)]
    arguments: str


class ToolCall(Wire):
    """A call that the assistant made earlier in the conversation."""

    id: str | None = None
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(Wire):
    """One message; `developer` is today's name for `system`."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    name: str | None = None
    tool_calls: Annotated[list[ToolCall], Field(fail_fast=True, max_length=128)] | None = None
    tool_call_id: str | None = None
    audio: Annotated[Any, BeforeValidator(unsupported("this server has no audio"))] = None
    function_call: Annotated[Any, BeforeValidator(unsupported("use 'tool_calls'"))] = None
    cache_control: Any = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            raise PydanticCustomError("missing", "missing content", {"field": "content"})
        if self.tool_calls and self.role != "assistant":
            raise PydanticCustomError(
                "not_here", "only messages of the assistant have tool calls", {"field": "tool_calls"}
            )
        return self

    @property
    def parts(self) -> list[tuple[str, str, Any]]:
        """Path below the message, text and `cache_control` of each content block."""
        content: Any = self.content
        if content is None:
            return []
        if isinstance(content, str):
            return [("content", content, None)]
        return [(f"content[{at}]", part.text, part.cache_control) for at, part in enumerate(content)]

    def plain(self) -> dict[str, Any]:
        """The message as the chat template takes it."""
        message: dict[str, Any] = {
            "role": "system" if self.role == "developer" else self.role,
            "content": "".join(text for _, text, _ in self.parts),
        }
        if self.name is not None:
            message["name"] = self.name
        if self.tool_call_id is not None:
            message["tool_call_id"] = self.tool_call_id
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call.id or "",
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": call.function.arguments},
                }
                for call in self.tool_calls
            ]
        return message


class ToolFunction(Wire):
    name: Annotated[str, Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")]
    description: str | None = None
    parameters: FreeObject | None = None
    strict: bool | None = None


class ToolDefinition(Wire):
    type: Literal["function"]
    function: ToolFunction

    def plain(self) -> dict[str, Any]:
        """The tool as the chat template takes it."""
        function: dict[str, Any] = {"name": self.function.name}
        if self.function.description is not None:
            function["description"] = self.function.description
        function["parameters"] = self.function.parameters or {"type": "object", "properties": {}}
        return {"type": "function", "function": function}


class NamedFunction(Wire):
    name: str


class NamedTool(Wire):
    """`tool_choice` that names the one function to call."""

    type: Literal["function"]
    function: NamedFunction


def _choice(value: Any) -> Any:
    if value in ("none", "auto", "required"):
        return value
    if isinstance(value, dict):
        return NamedTool.model_validate(value)
    raise PydanticCustomError(
        "value", "should be 'none', 'auto', 'required' or an object that names a function"
    )


ToolChoice = Annotated[NamedTool | Literal["none", "auto", "required"], BeforeValidator(_choice)]


class JsonSchemaFormat(Wire):
    name: str | None = None
    schema_: Annotated[FreeObject, Field(alias="schema")]
    strict: bool | None = None


class ResponseFormat(Wire):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchemaFormat | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "json_schema" and self.json_schema is None:
            raise PydanticCustomError("missing", "missing schema", {"field": "json_schema"})
        return self


def _variables(value: dict[str, Any]) -> dict[str, Any]:
    for name in _RESERVED_VARIABLES & value.keys():
        raise PydanticCustomError("reserved", "'{name}' is set by the server", {"name": name, "field": name})
    shallow(value)
    return value


Variables = Annotated[dict[str, Any], AfterValidator(_variables)]
"""What a client may hand to the chat template."""


class ChatFields(Wire):
    """What the answer may look like, for every dialect that says it as OpenAI's chat does."""

    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    response_format: ResponseFormat | None = None
    tools: Annotated[list[ToolDefinition], Field(fail_fast=True, max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.top_logprobs is not None and not self.logprobs:
            raise PydanticCustomError(
                "needs_logprobs", "it needs 'logprobs' to be true", {"field": "top_logprobs"}
            )
        names = [tool.function.name for tool in self.tools or ()]
        if len(set(names)) != len(names):
            raise PydanticCustomError("twice", "two tools have the same name", {"field": "tools"})
        if isinstance(self.tool_choice, NamedTool) and self.tool_choice.function.name not in names:
            raise PydanticCustomError("no_tool", "it names none of the tools", {"field": "tool_choice"})
        if self.tool_choice == "required" and not names:
            raise PydanticCustomError("no_tool", "it needs 'tools'", {"field": "tool_choice"})
        return self

    @property
    def wanted_logprobs(self) -> int | None:
        """Alternatives per token, or None for no log-probabilities at all."""
        return (self.top_logprobs or 0) if self.logprobs else None


class ChatRequest(GenerationFields, ChatFields):
    """A chat completion that was asked for."""

    messages: Annotated[list[ChatMessage], Field(fail_fast=True, min_length=1, max_length=_MOST_MESSAGES)]
    max_completion_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    chat_template_kwargs: Variables | None = None
    enable_thinking: bool | None = None
    modalities: list[Literal["text"]] | None = None
    audio: Annotated[Any, BeforeValidator(unsupported("this server has no audio"))] = None
    functions: Annotated[Any, BeforeValidator(unsupported("use 'tools'"))] = None
    function_call: Annotated[Any, BeforeValidator(unsupported("use 'tool_choice'"))] = None
    web_search_options: Annotated[Any, BeforeValidator(unsupported("this server does not search"))] = None
    metadata: Any = None
    store: Any = None
    service_tier: Any = None
    safety_identifier: Any = None
    prompt_cache_key: Any = None
    session_id: str | None = None

    @property
    def variables(self) -> dict[str, Any]:
        """What the chat template gets beside messages and tools."""
        variables = dict(self.chat_template_kwargs or {})
        if self.enable_thinking is not None:
            variables.setdefault("enable_thinking", self.enable_thinking)
        return variables


def parse_chat(document: dict[str, Any]) -> ChatRequest:
    """Raises `InvalidRequest` that names the field at fault."""
    try:
        request = ChatRequest.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None
    if request.max_completion_tokens is not None:
        return request.model_copy(update={"max_tokens": request.max_completion_tokens})
    return request
