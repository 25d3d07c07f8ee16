"""Tool calls in a rendered history that say the same in other bytes."""

from __future__ import annotations

import json
import re
from typing import Any

from hotprefix.diagnosis.canonical import same_json

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_MESSAGE = re.compile(r"^(\w+)\[(\d+)\]")
_CALL_PATH = re.compile(r"^(.*?tool_calls\[\d+\])")


def rewritten_call(old: str, new: str) -> int | None:
    """Which call is the first that differs in bytes, if all calls of two texts say the same.

    None if there are no calls, or one says something else, or all are equal in bytes.
    """
    olds, news = calls_in(old), calls_in(new)
    if not olds or len(olds) != len(news):
        return None
    try:
        if not all(same_json(_value(one), _value(other)) for one, other in zip(olds, news, strict=True)):
            return None
    except (ValueError, RecursionError):
        return None
    return next((i for i, (one, other) in enumerate(zip(olds, news, strict=True)) if one != other), None)


def call_path(block_path: str, index: int, *, of_message_before: bool) -> str:
    """The JSON path of a call that was rendered within the block at `block_path`.

    A call stands in the template text before the next message's block, so its message is
    usually the one before.
    """
    known = _CALL_PATH.match(block_path)
    if known:
        return known.group(1)
    message = _MESSAGE.match(block_path)
    if not message:
        return block_path
    number = int(message.group(2)) - of_message_before
    return f"{message.group(1)}[{max(0, number)}].tool_calls[{index}]"


def calls_in(text: str) -> list[str]:
    """The JSON of the calls in a rendered text, or the text itself if it is one JSON object."""
    found = [call.strip() for call in _CALL.findall(text)]
    if found:
        return found
    whole = text.strip()
    return [whole] if whole.startswith("{") and whole.endswith("}") else []


def _value(text: str) -> Any:
    """The call as JSON, with arguments that are JSON in a string taken apart."""
    value = json.loads(text)
    return _unpacked(value)


def _unpacked(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _argument(item) if key == "arguments" else _unpacked(item) for key, item in value.items()
        }
    return [_unpacked(item) for item in value] if isinstance(value, list) else value


def _argument(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
