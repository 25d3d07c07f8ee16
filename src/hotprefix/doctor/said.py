"""What a recorded answer says, where it is plain text: only that can come back as it was drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.recorded import Recorded


def said(recorded: Recorded) -> str:
    """Empty without an answer, and for one with tool calls or thoughts: how those were drawn isn't known."""
    response = recorded.response or {}
    match recorded.dialect:
        case Dialect.CHAT:
            return _message(_first(response.get("choices")).get("message"))
        case Dialect.DASHSCOPE:
            output = response.get("output")
            given = output if isinstance(output, Mapping) else {}
            text = given.get("text")
            return text if isinstance(text, str) else _message(_first(given.get("choices")).get("message"))
        case Dialect.ANTHROPIC:
            return _parts(response.get("content"), "text")
        case Dialect.RESPONSES:
            items = response.get("output")
            if not isinstance(items, Sequence) or len(items) != 1:
                return ""
            return _parts(_first(items).get("content"), "output_text")


def _message(message: Any) -> str:
    if not isinstance(message, Mapping) or message.get("tool_calls") or message.get("reasoning_content"):
        return ""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "".join(text for text in texts if isinstance(text, str))


def _parts(parts: Any, kind: str) -> str:
    if not isinstance(parts, list) or not all(
        isinstance(p, Mapping) and p.get("type") == kind for p in parts
    ):
        return ""
    return "".join(str(part.get("text") or "") for part in parts)


def _first(values: Any) -> Mapping[str, Any]:
    found = values[0] if isinstance(values, list) and values else None
    return found if isinstance(found, Mapping) else {}
