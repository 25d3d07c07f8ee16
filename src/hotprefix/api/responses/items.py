"""Items of `input`, checked, and the form in which they are stored and listed."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WrapValidator, model_validator
from pydantic_core import PydanticCustomError

from hotprefix.api.fields import Wire

Item = dict[str, Any]
"""An item as the wire and the store have it."""

KNOWN_ITEMS = frozenset({"message", "function_call", "function_call_output", "reasoning"})
_TEXTS = ("input_text", "output_text", "text")
_MOST_ITEMS = 10_000


class Part(Wire):
    """A piece of text; a refusal is text as well."""

    type: str
    text: str
    cache_control: Any = None

    @model_validator(mode="before")
    @classmethod
    def _only_text(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        kind = value.get("type")
        if kind == "refusal" and "refusal" in value:
            return {"type": "output_text", "text": value["refusal"]}
        if kind not in _TEXTS:
            shown = kind[:40] if isinstance(kind, str) else "missing"
            raise PydanticCustomError(
                "unsupported",
                "a part of type {kind} is not supported, only text is",
                {"kind": shown, "field": "type"},
            )
        return value


def _text_or_parts(value: Any, parts: Callable[[Any], Any]) -> tuple[Part, ...] | str:
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        raise PydanticCustomError("content_type", "input should be a string or an array of text parts")
    return tuple(parts(value))


Content = Annotated[list[Part], Field(fail_fast=True), WrapValidator(_text_or_parts)]
"""A string or a tuple of `Part` once validated."""


class MessageItem(Wire):
    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: Content
    cache_control: Any = None

    def stored(self) -> Item:
        """With an id, and its content as an array."""
        kind = "output_text" if self.role == "assistant" else "input_text"
        content: Any = self.content
        texts = [content] if isinstance(content, str) else [part.text for part in content]
        more: dict[str, Any] = {"annotations": []} if self.role == "assistant" else {}
        return {
            "id": new_id("msg"),
            "type": "message",
            "status": "completed",
            "role": self.role,
            "content": [{"type": kind, "text": text} | more for text in texts],
        }


class CallItem(Wire):
    """A call that the model made."""

    type: Literal["function_call"]
    call_id: Annotated[str, Field(min_length=1, max_length=256)]
    name: Annotated[str, Field(min_length=1, max_length=256)]
    arguments: str

    def stored(self) -> Item:
        return call_item(self.call_id, self.name, self.arguments)


class CallOutputItem(Wire):
    """What came of a call."""

    type: Literal["function_call_output"]
    call_id: Annotated[str, Field(min_length=1, max_length=256)]
    output: Content
    cache_control: Any = None

    def stored(self) -> Item:
        output: Any = self.output
        if not isinstance(output, str):
            output = [{"type": "input_text", "text": part.text} for part in output]
        return {
            "id": new_id("fco"),
            "type": "function_call_output",
            "status": "completed",
            "call_id": self.call_id,
            "output": output,
        }


class ReasoningItem(Wire):
    """Accepted and dropped: the models here don't take their old thoughts back."""

    type: Literal["reasoning"]


InputItem = MessageItem | CallItem | CallOutputItem | ReasoningItem

_KINDS: dict[str, type[MessageItem | CallItem | CallOutputItem | ReasoningItem]] = {
    "message": MessageItem,
    "function_call": CallItem,
    "function_call_output": CallOutputItem,
    "reasoning": ReasoningItem,
}


def _item(value: Any) -> Any:
    if not isinstance(value, dict):
        raise PydanticCustomError("item_type", "input should be an object")
    kind = value.get("type", "message")
    model = _KINDS.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise PydanticCustomError(
            "unsupported",
            "an item of type {kind} is not supported, only {known} are",
            {
                "kind": kind[:40] if isinstance(kind, str) else "?",
                "known": ", ".join(sorted(_KINDS)),
                "field": "type",
            },
        )
    return model.model_validate(value)


def _text_or_items(value: Any, items: Callable[[Any], Any]) -> Any:
    if isinstance(value, str):
        return (MessageItem(role="user", content=value),)  # type: ignore[arg-type]  # a string is content too
    if not isinstance(value, list):
        raise PydanticCustomError("input_type", "input should be a string or an array of items")
    return tuple(items(value))


Input = Annotated[
    list[Annotated[InputItem, BeforeValidator(_item)]],
    Field(fail_fast=True, min_length=1, max_length=_MOST_ITEMS),
    WrapValidator(_text_or_items),
]
"""A tuple of items once validated; a string is a user message."""


def new_id(kind: str) -> str:
    """A fresh id: `msg_…`, `fc_…`, `resp_…`."""
    return f"{kind}_{uuid.uuid4().hex}"


def call_item(call_id: str, name: str, arguments: str) -> Item:
    """A finished function call."""
    return {
        "id": new_id("fc"),
        "type": "function_call",
        "status": "completed",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
    }


def texts_of(content: Any) -> Iterator[tuple[str, str]]:
    """Path below the item and text of each content block of a stored item."""
    if isinstance(content, str):
        yield "", content
        return
    for at, part in enumerate(content):
        yield f"[{at}]", part["text"]
