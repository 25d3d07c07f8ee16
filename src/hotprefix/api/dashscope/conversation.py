"""DashScope's ways to hand over a conversation → one."""

from __future__ import annotations

from hotprefix.api.chat import conversation_of
from hotprefix.api.conversation import Conversation
from hotprefix.api.dashscope.request import NativeRequest
from hotprefix.api.markers import MarkerReader
from hotprefix.prompt.spans import ContentBlock


def native_conversation(request: NativeRequest, reader: MarkerReader) -> Conversation:
    """Messages or `history` first, then the prompt as what the user says last."""
    given = request.input
    conversation = conversation_of(
        given.messages or (),
        request.chosen.tools,
        reader,
        root="input.messages",
        tools_root="parameters.tools",
    )
    for number, exchange in enumerate(given.history or ()):
        _say(conversation, "user", exchange.user, f"input.history[{number}].user")
        _say(conversation, "assistant", exchange.bot, f"input.history[{number}].bot")
    if given.prompt is not None:
        _say(conversation, "user", given.prompt, "input.prompt")
    return conversation


def _say(conversation: Conversation, role: str, text: str, path: str) -> None:
    conversation.add({"role": role, "content": text}, [(ContentBlock(path, role, text), None)])
