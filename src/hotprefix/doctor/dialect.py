"""Which API a request body is for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any


class Dialect(StrEnum):
    """The four APIs that the server speaks, and that files may hold requests for."""

    CHAT = "openai-chat"
    RESPONSES = "openai-responses"
    DASHSCOPE = "dashscope"
    ANTHROPIC = "anthropic"


_BY_PATH = {
    "/chat/completions": Dialect.CHAT,
    "/responses": Dialect.RESPONSES,
    "/text-generation/generation": Dialect.DASHSCOPE,
    "/multimodal-generation/generation": Dialect.DASHSCOPE,
    "/messages": Dialect.ANTHROPIC,
}
_ANTHROPIC_FIELDS = ("system", "anthropic_version", "stop_sequences", "thinking")
_ANTHROPIC_BLOCKS = ("tool_use", "tool_result", "thinking")


def dialect_of(body: Mapping[str, Any], url: str = "") -> Dialect | None:
    """By the address if it tells, else by what only one of the APIs has; None: no request of any."""
    for end, dialect in _BY_PATH.items():
        if url.split("?", 1)[0].rstrip("/").endswith(end):
            return dialect
    given = body.get("input")
    if isinstance(given, Mapping) and ("messages" in given or "prompt" in given):
        return Dialect.DASHSCOPE
    messages = body.get("messages")
    if isinstance(messages, list):
        return Dialect.ANTHROPIC if _is_anthropic(body, messages) else Dialect.CHAT
    if isinstance(given, str | list) and "messages" not in body:
        return Dialect.RESPONSES
    return None


def _is_anthropic(body: Mapping[str, Any], messages: list[Any]) -> bool:
    if any(name in body for name in _ANTHROPIC_FIELDS):
        return True
    tools = body.get("tools")
    if isinstance(tools, list) and any(
        isinstance(tool, Mapping) and "input_schema" in tool for tool in tools
    ):
        return True
    return any(
        isinstance(block, Mapping) and block.get("type") in _ANTHROPIC_BLOCKS
        for message in messages
        if isinstance(message, Mapping) and isinstance(message.get("content"), list)
        for block in message["content"]
    )
