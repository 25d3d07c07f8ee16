"""The body of `POST /v1/completions`, checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, ValidationError, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.errors import invalid_request
from hotprefix.api.fields import GenerationFields, TokenIndex, unsupported

TokenList = Annotated[list[TokenIndex], Field(fail_fast=True, min_length=1)]


def _is_many(value: Any, many: Callable[[Any], Any]) -> Any:
    """A string, or a list: of strings, of token ids (one prompt), or of lists of token ids."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list):
        raise PydanticCustomError("prompt_type", "input should be a string or an array")
    if value and isinstance(value[0], int):
        return many([value])
    return many(value)


def _one(value: Any, tokens: Callable[[Any], Any]) -> Any:
    return value if isinstance(value, str) else tokens(value)


Prompt = Annotated[TokenList, WrapValidator(_one)]
"""A `str` or a list of token ids once validated."""


class CompletionRequest(GenerationFields):
    """Text completions that were asked for."""

    prompt: Annotated[
        list[Prompt], Field(fail_fast=True, min_length=1, max_length=2048), WrapValidator(_is_many)
    ]
    echo: bool | None = None
    best_of: Annotated[int, Field(ge=1, le=128)] | None = None
    logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    suffix: Annotated[Any, BeforeValidator(unsupported("this model does not fill in the middle"))] = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.best_of is not None and self.best_of != (self.n or 1):
            raise PydanticCustomError("best_of", "only the value of 'n' is supported", {"field": "best_of"})
        if self.echo and self.logprobs is not None:
            raise PydanticCustomError(
                "echo",
                "log-probabilities of the prompt are not supported; leave out 'echo'",
                {"field": "logprobs"},
            )
        return self

    @property
    def prompts(self) -> list[str | list[int]]:
        """The prompts, in order."""
        return list(self.prompt)


def parse_completion(document: dict[str, Any]) -> CompletionRequest:
    """Raises `InvalidRequest` that names the field at fault."""
    try:
        return CompletionRequest.model_validate(document)
    except ValidationError as error:
        raise invalid_request(error) from None
