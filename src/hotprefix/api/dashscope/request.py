"""The body of DashScope's native generation routes, checked."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.chat_request import ChatFields, ChatMessage, Content
from hotprefix.api.dashscope.stops import StopRules, Stops
from hotprefix.api.errors import invalid_request
from hotprefix.api.fields import Wire, unsupported
from hotprefix.engine.request import Grammar, Sampling
from hotprefix.prompt.tokenizer import Tokenizer

_MOST_MESSAGES = 10_000
_LARGEST_TOP_K = 100
_MEDIA = ("image", "audio", "video", "file")


def _typed(content: Any) -> Any:
    """Parts with their `type`: the 2.x client leaves it out, the 1.x client does not."""
    if not isinstance(content, list):
        return content
    return [
        part if not isinstance(part, dict) or "type" in part else {"type": _kind(part), **part}
        for part in content
    ]


def _kind(part: dict[str, Any]) -> str:
    return next((name for name in (*_MEDIA, "text") if name in part), "missing")


def _from_its_beginning(value: Any) -> None:
    unsupported("this server starts every answer at its beginning")(value or None)


class NativeMessage(ChatMessage):
    """One message. `partial` would have the model go on in the middle of an answer."""

    content: Annotated[Content, BeforeValidator(_typed)] | None = None
    partial: Annotated[Any, BeforeValidator(_from_its_beginning)] = None


class Exchange(Wire):
    """A question and its answer in the deprecated `history`."""

    user: str
    bot: str


class NativeInput(Wire):
    """The conversation: messages, or a prompt with or without `history`."""

    messages: (
        Annotated[list[NativeMessage], Field(fail_fast=True, min_length=1, max_length=_MOST_MESSAGES)] | None
    ) = None
    prompt: Annotated[str, Field(min_length=1)] | None = None
    history: Annotated[list[Exchange], Field(fail_fast=True, max_length=_MOST_MESSAGES)] | None = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if self.messages is None and self.prompt is None:
            raise PydanticCustomError("missing", "missing messages", {"field": "messages"})
        return self


class NativeParameters(ChatFields):
    """How to draw the answers, and how to show them. None means "not given" everywhere.

    `top_k` 0 or above 100 sets no limit, as documented.
    """

    result_format: Literal["text", "message"] | None = None
    incremental_output: bool | None = None
    max_tokens: Annotated[int, Field(ge=1, le=2**31 - 1)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**64)] | None = None
    stop: Stops | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=10)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    n: Annotated[int, Field(ge=1, le=128)] | None = None
    enable_thinking: bool | None = None

    def sampling(self, tokenizer: Tokenizer, grammar: Grammar | None) -> Sampling:
        """The engine's form. Raises `InvalidRequest` for token ids outside the vocabulary."""
        texts, tokens = (self.stop or StopRules()).resolve(tokenizer)
        given: dict[str, Any] = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "seed": self.seed,
            "repetition_penalty": self.repetition_penalty,
            "presence_penalty": self.presence_penalty,
        }
        return Sampling(
            max_tokens=self.max_tokens,
            top_k=self.top_k if self.top_k is not None and self.top_k <= _LARGEST_TOP_K else 0,
            stop=texts,
            stop_token_ids=tokens,
            top_logprobs=self.wanted_logprobs,
            grammar=grammar,
            **{name: value for name, value in given.items() if value is not None},
        )

    @property
    def variables(self) -> dict[str, Any]:
        """What the chat template gets beside messages and tools."""
        return {} if self.enable_thinking is None else {"enable_thinking": self.enable_thinking}


class NativeRequest(Wire):
    """A generation that was asked for."""

    model: Annotated[str, Field(min_length=1, max_length=1000)]
    input: NativeInput
    parameters: NativeParameters | None = None

    @property
    def chosen(self) -> NativeParameters:
        """The parameters, given or not."""
        return self.parameters or NativeParameters()

    def ignored(self) -> list[str]:
        """Names of the fields that have no meaning here."""
        inner = self.chosen.model_extra or {}
        return [*(self.model_extra or {}), *(f"parameters.{name}" for name in inner)]


def parse_native(document: dict[str, Any]) -> NativeRequest:
    """Raises `InvalidRequest` that names the field at fault."""
    try:
        return NativeRequest.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None
