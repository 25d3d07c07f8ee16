"""Which API a request body is for."""

from __future__ import annotations

import re
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
_OTHER_PATHS = ("/embeddings", "/moderations", "/audio/speech", "/rerank")
_ANTHROPIC_FIELDS = ("system", "anthropic_version", "stop_sequences")
_CHAT_ROLES = ("system", "developer", "tool", "function")
_RESPONSES_FIELDS = ("model", "instructions", "previous_response_id", "conversation", "prompt")
_NO_PROMPT = re.compile(r"embed|moderation|rerank|tts|\bbge\b|\be5\b", re.IGNORECASE)
"""Models that take an `input` which is no prompt."""
_ANTHROPIC_BLOCKS = ("tool_use", "tool_result", "thinking")


def dialect_of(body: Mapping[str, Any], url: str = "") -> Dialect | None:
    """By the address if it tells, else by what only one of the APIs has; None: no request of any."""
    path = url.split("?", 1)[0].rstrip("/")
    for end, dialect in _BY_PATH.items():
        if path.endswith(end):
            return dialect
    if path.endswith(_OTHER_PATHS):
        return None
    given = body.get("input")
    if isinstance(given, Mapping) and ("messages" in given or "prompt" in given):
        return Dialect.DASHSCOPE
    messages = body.get("messages")
    if isinstance(messages, list):
        return Dialect.ANTHROPIC if _is_anthropic(body, messages) else Dialect.CHAT
    return Dialect.RESPONSES if _is_responses(body, given) else None


def _is_responses(body: Mapping[str, Any], given: Any) -> bool:
    """Not everything with an `input` has a prompt in it: embeddings have texts, and so has moderation."""
    if "messages" in body or not any(name in body for name in _RESPONSES_FIELDS):
        return False
    if _NO_PROMPT.search(str(body.get("model", ""))):
        return False
    return isinstance(given, str) or (
        isinstance(given, list) and all(isinstance(item, Mapping) for item in given)
    )


def _is_anthropic(body: Mapping[str, Any], messages: list[Any]) -> bool:
    if any(name in body for name in _ANTHROPIC_FIELDS):
        return True
    if any(isinstance(message, Mapping) and message.get("role") in _CHAT_ROLES for message in messages):
        return False
    # `thinking` is also a field of Chat with some vendors, who have no budget in it.
    thinking = body.get("thinking")
    if isinstance(thinking, Mapping) and ("budget_tokens" in thinking or _is_claude(body)):
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


def _is_claude(body: Mapping[str, Any]) -> bool:
    return "claude" in str(body.get("model", "")).lower()
