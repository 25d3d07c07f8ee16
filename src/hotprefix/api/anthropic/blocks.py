"""Content blocks of messages, as clients send them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WrapValidator
from pydantic_core import PydanticCustomError

from hotprefix.api.fields import FreeObject, Wire

_MOST_BLOCKS = 10_000
_SERVED = ("text", "tool_use", "tool_result", "thinking", "redacted_thinking")


class TextBlock(Wire):
    type: Literal["text"]
    text: Annotated[str, Field(min_length=1)]
    cache_control: Any = None


class ToolUseBlock(Wire):
    """A call that the assistant made earlier."""

    type: Literal["tool_use"]
    id: Annotated[str, Field(min_length=1, max_length=256)]
    name: Annotated[str, Field(min_length=1, max_length=256)]
    input: FreeObject
    cache_control: Any = None


class ThinkingBlock(Wire):
    """What the assistant thought earlier: accepted, and not part of the prompt."""

    type: Literal["thinking", "redacted_thinking"]


def _only(*kinds: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        kind = value.get("type") if isinstance(value, dict) else None
        if isinstance(kind, str) and kind not in kinds:
            raise PydanticCustomError(
                "unsupported",
                "blocks of type {kind} are not supported here, only {kinds}",
                {"kind": kind[:40], "kinds": ", ".join(kinds)},
            )
        return value

    return check


def _text_or_blocks(value: Any, blocks: Callable[[Any], Any]) -> Any:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("content_type", "input should be a string or an array of blocks")
    return tuple(blocks(value))


OnlyText = Annotated[TextBlock, BeforeValidator(_only("text"))]
TextContent = Annotated[
    list[OnlyText], Field(fail_fast=True, max_length=_MOST_BLOCKS), WrapValidator(_text_or_blocks)
]
"""A string or a tuple of `TextBlock` once validated."""


class ToolResultBlock(Wire):
    """What a call gave; `is_error` says nothing that the content doesn't."""

    type: Literal["tool_result"]
    tool_use_id: Annotated[str, Field(min_length=1, max_length=256)]
    content: TextContent | None = None
    is_error: bool | None = None
    cache_control: Any = None


def _tag(value: Any) -> str:
    kind = value.get("type") if isinstance(value, dict) else getattr(value, "type", None)
    return "~thinking" if kind == "redacted_thinking" else f"~{kind}"


Block = Annotated[
    Annotated[TextBlock, Tag("~text")]
    | Annotated[ToolUseBlock, Tag("~tool_use")]
    | Annotated[ToolResultBlock, Tag("~tool_result")]
    | Annotated[ThinkingBlock, Tag("~thinking")],
    Discriminator(_tag, "block_type", "input should be an object with a known 'type'"),
    BeforeValidator(_only(*_SERVED)),
]
Content = Annotated[
    list[Block], Field(fail_fast=True, min_length=1, max_length=_MOST_BLOCKS), WrapValidator(_text_or_blocks)
]
"""A string or a tuple of blocks once validated."""
