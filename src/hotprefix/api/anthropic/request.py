"""The bodies of `/v1/messages` and `/v1/messages/count_tokens`, checked."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.anthropic.blocks import Content, TextContent
from hotprefix.api.errors import invalid_request
from hotprefix.api.fields import FreeObject, StopText, Wire, unsupported
from hotprefix.engine.request import Grammar, GrammarKind, Sampling
from hotprefix.prompt.tools import tool_call_lark

_MOST_MESSAGES = 10_000
_MOST_CALLS = 8
"""In one answer of a model that has to call."""
_NAME = r"^[a-zA-Z0-9_-]{1,128}$"
_TINY_TOP_P = 1e-8
_Request = TypeVar("_Request", bound="Prompted")


class Message(Wire):
    role: Literal["user", "assistant"]
    content: Content


def _custom(value: Any) -> Any:
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in (None, "custom"):
        raise PydanticCustomError(
            "unsupported",
            "tools of type {kind} are not supported, only those with an 'input_schema'",
            {"kind": str(kind)[:40]},
        )
    return value


class ToolDefinition(Wire):
    name: Annotated[str, Field(pattern=_NAME)]
    input_schema: FreeObject
    description: str | None = None
    cache_control: Any = None

    def plain(self) -> dict[str, Any]:
        """The tool as the chat template takes it."""
        function: dict[str, Any] = {"name": self.name}
        if self.description is not None:
            function["description"] = self.description
        return {"type": "function", "function": function | {"parameters": self.input_schema}}


class ToolChoice(Wire):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool | None = None


class OutputFormat(Wire):
    type: Literal["json_schema"]
    schema_: Annotated[FreeObject, Field(alias="schema")]


class OutputConfig(Wire):
    format: OutputFormat | None = None


class Prompted(Wire):
    """What the prompt is made of: all of a request for counting."""

    model: Annotated[str, Field(min_length=1, max_length=1000)]
    messages: Annotated[list[Message], Field(fail_fast=True, min_length=1, max_length=_MOST_MESSAGES)]
    system: TextContent | None = None
    tools: (
        Annotated[
            list[Annotated[ToolDefinition, BeforeValidator(_custom)]], Field(fail_fast=True, max_length=128)
        ]
        | None
    ) = None
    tool_choice: ToolChoice | None = None
    thinking: dict[str, Any] | None = None
    output_config: OutputConfig | None = None
    cache_control: Any = None
    mcp_servers: Annotated[Any, BeforeValidator(unsupported("this server calls no MCP servers"))] = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [tool.name for tool in self.tools or ()]
        if len(set(names)) != len(names):
            raise PydanticCustomError("twice", "tool names must be unique", {"field": "tools"})
        choice = self.tool_choice
        if choice is not None and choice.type in ("any", "tool") and not names:
            raise PydanticCustomError("no_tool", "it needs 'tools'", {"field": "tool_choice"})
        if choice is not None and choice.type == "tool" and choice.name not in names:
            raise PydanticCustomError("no_tool", "it names none of the tools", {"field": "tool_choice"})
        return self

    @property
    def plain_tools(self) -> list[dict[str, Any]]:
        """The tools as the chat template takes them: all of them, whatever `tool_choice` says, so that
        changing it leaves the prefix as it is."""
        return [tool.plain() for tool in self.tools or ()]

    @property
    def thinks(self) -> bool:
        """Whether thinking was asked for."""
        return self.thinking is not None and self.thinking.get("type") != "disabled"

    @property
    def fixed_opening(self) -> str | None:
        """A field that decides how an answer begins, if one is given: it does not go with an answer that
        was begun, nor with none at all."""
        choice = self.tool_choice
        given = {
            "thinking": self.thinks,
            "tool_choice": choice is not None and choice.type in ("any", "tool"),
            "output_config.format": self.output_config is not None and self.output_config.format is not None,
        }
        return next((name for name, is_given in given.items() if is_given), None)

    @property
    def variables(self) -> dict[str, Any]:
        """What the chat template gets beside messages and tools."""
        off = self.thinking is not None and self.thinking.get("type") == "disabled"
        return {"enable_thinking": False} if off else {}


class MessagesRequest(Prompted):
    """An answer that was asked for; `max_tokens` 0 only prepares the cache."""

    max_tokens: Annotated[int, Field(ge=0, le=2**31 - 1)]
    stream: bool | None = None
    stop_sequences: Annotated[list[StopText], Field(fail_fast=True, max_length=64)] | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    metadata: Any = None
    service_tier: Any = None

    @model_validator(mode="after")
    def _warms_only(self) -> Self:
        culprit = "stream" if self.stream else self.fixed_opening
        if self.max_tokens == 0 and culprit is not None:
            raise PydanticCustomError(
                "warm", "0 can't be combined with '{culprit}'", {"field": "max_tokens", "culprit": culprit}
            )
        return self

    @property
    def most_calls(self) -> int | None:
        """Tool calls that may be shown; None for any number."""
        if self.tool_choice is None:
            return None
        if self.tool_choice.type == "none":
            return 0
        return 1 if self.tool_choice.disable_parallel_tool_use else None

    def grammar(self) -> Grammar | None:
        """What the answer has to look like. A tool call that is required goes before a format."""
        choice = self.tool_choice
        if choice is not None and choice.type in ("any", "tool"):
            tools = [
                tool.plain() for tool in self.tools or () if choice.type == "any" or tool.name == choice.name
            ]
            most = _MOST_CALLS if choice.type == "any" and not choice.disable_parallel_tool_use else 1
            return Grammar(GrammarKind.LARK, tool_call_lark(tools, most))
        if self.output_config is None or self.output_config.format is None:
            return None
        return Grammar(GrammarKind.JSON_SCHEMA, json.dumps(self.output_config.format.schema_))

    def sampling(self, max_tokens: int | None) -> Sampling:
        """The engine's form; `max_tokens` is what there is room for, None for all of it."""
        return Sampling(
            max_tokens=max_tokens,
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else max(self.top_p, _TINY_TOP_P),
            top_k=self.top_k or 0,
            stop=tuple(dict.fromkeys(self.stop_sequences or ())),
            grammar=self.grammar(),
        )

    def ignored(self) -> list[str]:
        """Names of the fields that have no meaning here."""
        inner = (self.output_config.model_extra or {}) if self.output_config is not None else {}
        return [*(self.model_extra or {}), *(f"output_config.{name}" for name in inner)]


def parse(kind: type[_Request], document: dict[str, Any]) -> _Request:
    """Raises `InvalidRequest` that names the field at fault."""
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None
