"""The body of `POST /v1/responses`, checked."""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, Self

import orjson
from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.chat_request import Variables
from hotprefix.api.errors import invalid_request
from hotprefix.api.fields import FreeObject, Wire, unsupported
from hotprefix.api.responses.items import Input, Item, ReasoningItem
from hotprefix.api.responses.tools import FunctionTool, NamedTool, ToolChoice, call_grammar
from hotprefix.engine.request import Grammar, GrammarKind, Sampling

LOGPROBS = "message.output_text.logprobs"
_TINY_TOP_P = 1e-8


class TextFormat(Wire):
    """What the answer's text has to be."""

    type: Literal["text", "json_object", "json_schema"]
    name: str | None = None
    schema_: Annotated[FreeObject | None, Field(alias="schema")] = None
    strict: bool | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.type == "json_schema" and self.schema_ is None:
            raise PydanticCustomError("missing", "missing schema", {"field": "schema"})
        return self

    def shown(self) -> dict[str, Any]:
        """As the response repeats it."""
        return self.model_dump(by_alias=True, exclude_none=True)


class TextConfig(Wire):
    format: TextFormat | None = None


def _not_true(reason: str) -> BeforeValidator:
    refuse = unsupported(reason)
    return BeforeValidator(lambda value: value if value is False else refuse(value))


_CONVERSATION = "this server keeps no conversations; chain responses with 'previous_response_id'"
_BACKGROUND = "every response is answered at once; leave it out or send false"


# What is given back is stored and sent with several events: its length is bounded, metadata's as OpenAI's.
MetaName = Annotated[str, Field(max_length=64)]
MetaValue = Annotated[str, Field(max_length=512)]
Echo = Annotated[str, Field(max_length=1000)]


class ResponsesRequest(Wire):
    """A response that was asked for. None means "not given" everywhere."""

    model: Annotated[str, Field(min_length=1, max_length=1000)]
    input: Input
    instructions: str | None = None
    previous_response_id: Annotated[str, Field(min_length=1, max_length=1000)] | None = None
    store: bool | None = None
    stream: bool | None = None
    metadata: Annotated[dict[MetaName, MetaValue], Field(max_length=16)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1, le=2**31 - 1)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), lt=2**64)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    include: list[str] | None = None
    text: TextConfig | None = None
    tools: Annotated[list[FunctionTool], Field(fail_fast=True, max_length=128)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    truncation: Literal["auto", "disabled"] | None = None
    session_id: str | None = None
    chat_template_kwargs: Variables | None = None
    enable_thinking: bool | None = None
    conversation: Annotated[Any, BeforeValidator(unsupported(_CONVERSATION))] = None
    background: Annotated[bool | None, _not_true(_BACKGROUND)] = None
    prompt: Annotated[Any, BeforeValidator(unsupported("this server keeps no prompt templates"))] = None
    cache_control: Any = None
    prompt_cache_key: Echo | None = None
    prompt_cache_options: Any = None
    prompt_cache_retention: Any = None
    reasoning: Any = None
    safety_identifier: Echo | None = None
    service_tier: Any = None
    max_tool_calls: Any = None
    stream_options: Any = None
    user: Echo | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [tool.name for tool in self.tools or ()]
        if len(set(names)) != len(names):
            raise PydanticCustomError("twice", "two tools have the same name", {"field": "tools"})
        if isinstance(self.tool_choice, NamedTool) and self.tool_choice.name not in names:
            raise PydanticCustomError("no_tool", "it names none of the tools", {"field": "tool_choice"})
        if self.tool_choice == "required" and not names:
            raise PydanticCustomError("no_tool", "it needs 'tools'", {"field": "tool_choice"})
        return self

    @property
    def is_stored(self) -> bool:
        """Whether its id can be used later: the default."""
        return self.store is not False

    @cached_property
    def new_items(self) -> list[Item]:
        """The input as it is stored, each item with its id; reasoning is left out."""
        return [item.stored() for item in self.input if not isinstance(item, ReasoningItem)]

    @property
    def offered_tools(self) -> list[dict[str, Any]]:
        """The tools that the model gets to see; with `tool_choice` "none" it sees none."""
        return [] if self.tool_choice == "none" else [tool.plain() for tool in self.tools or ()]

    @property
    def variables(self) -> dict[str, Any]:
        """What the chat template gets beside messages and tools."""
        variables = dict(self.chat_template_kwargs or {})
        if self.enable_thinking is not None:
            variables.setdefault("enable_thinking", self.enable_thinking)
        return variables

    @property
    def wanted_logprobs(self) -> int | None:
        """Alternatives per token, or None for no log-probabilities at all."""
        if self.top_logprobs or LOGPROBS in (self.include or ()):
            return self.top_logprobs or 0
        return None

    def ignored(self) -> list[str]:
        """Names of the top-level fields that have no meaning here."""
        return list(self.model_extra or {})

    def sampling(self) -> Sampling:
        """The engine's form."""
        top_p = 1.0 if self.top_p is None else self.top_p
        return Sampling(
            max_tokens=self.max_output_tokens,
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=max(top_p, _TINY_TOP_P),
            top_k=max(self.top_k or 0, 0),
            seed=None if self.seed is None else self.seed % 2**64,
            top_logprobs=self.wanted_logprobs,
            grammar=self.grammar(),
        )

    def grammar(self) -> Grammar | None:
        """What the answer has to look like. A tool call that is required goes before a format."""
        more = {"most": 1} if self.parallel_tool_calls is False else {}
        forced = call_grammar(self.tool_choice, self.offered_tools, **more)
        wanted = self.text.format if self.text is not None else None
        if forced is not None or wanted is None or wanted.type == "text":
            return forced
        if wanted.type == "json_object":
            return Grammar(GrammarKind.JSON_OBJECT)
        return Grammar(GrammarKind.JSON_SCHEMA, orjson.dumps(wanted.schema_).decode())


def parse_responses(document: dict[str, Any]) -> ResponsesRequest:
    """Raises `InvalidRequest` that names the field at fault."""
    try:
        return ResponsesRequest.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None
