"""System, tools and messages → one conversation with its content blocks and markers.

The blocks are numbered in the order of the prompt: system, tools, messages. Which place the tools
have in the system message is the chat template's choice, mostly behind the system's text. So a
marker on a tool, and one on the last system block of a request with tools, covers all that comes
before the first message: system and tools. It ends where the first message's text begins.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from hotprefix.api.anthropic.blocks import TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock
from hotprefix.api.anthropic.request import Message, Prompted
from hotprefix.api.conversation import Conversation
from hotprefix.api.markers import MarkerReader
from hotprefix.base.errors import InvalidRequest
from hotprefix.modes.marker import Marker
from hotprefix.modes.rules import require_order
from hotprefix.profiles.profile import Profile, ToolMarkers
from hotprefix.prompt.spans import ContentBlock

Placed = tuple[ContentBlock, str | None]
"""A block, and the TTL name of the marker at its end, if any."""


def anthropic_conversation(request: Prompted, profile: Profile, reader: MarkerReader) -> Conversation:
    """Raises `InvalidRequest` for messages and markers that Anthropic refuses too."""
    builder = _Builder(reader)
    builder.system(request, cached_tools=_tools_are_cached(profile))
    for number, message in enumerate(request.messages):
        builder.message(message, f"messages[{number}]")
    if request.messages[-1].role == "assistant":
        _require_prefill(request, builder.conversation)
        builder.conversation.is_begun = True
    builder.automatic(request.cache_control, profile)
    if request.thinks:
        reader.warnings.append("thinking has no effect: the model answers as its template has it")
    conversation = builder.conversation
    if profile.explicit is not None:
        require_order(profile.explicit, conversation.markers)
    return conversation


def _tools_are_cached(profile: Profile) -> bool:
    return profile.explicit is not None and profile.explicit.tool_markers is ToolMarkers.CACHED


def _require_prefill(request: Prompted, conversation: Conversation) -> None:
    """Raise `InvalidRequest` unless the last message is text that an answer can go on from."""
    path = f"messages[{len(request.messages) - 1}]"
    culprit = request.fixed_opening
    if culprit is not None:
        raise InvalidRequest(f"An answer can't be begun in '{path}' beside '{culprit}'.", param=path)
    last = conversation.messages[-1]
    if last["role"] != "assistant" or "tool_calls" in last or not last["content"]:
        raise InvalidRequest(
            f"Invalid value for '{path}': an answer that was begun has text and nothing else; the results of "
            "tools belong into a user message behind it.",
            param=path,
        )
    if last["content"][-1].isspace():
        raise InvalidRequest(
            "messages: final assistant content cannot end with trailing whitespace", param=path
        )


class _Builder:
    """Markers are collected in the order of the request: tools, system, messages."""

    def __init__(self, reader: MarkerReader) -> None:
        self.conversation = Conversation(warnings=reader.warnings)
        self._reader = reader
        self._waiting: list[Placed] = []
        self._calls: set[str] = set()

    def system(self, request: Prompted, *, cached_tools: bool) -> None:
        """The system message, and the tools as blocks that end where the first message begins."""
        placed = self._texts(request.system, "system", "system")
        tools = request.tools or ()
        if placed:
            self._add("system", [(block, None) for block, _ in placed])
        end = len(placed) + len(tools) - 1
        for number, tool in enumerate(tools):
            path = f"tools[{number}]"
            self._waiting.append((ContentBlock(path, "system", ""), None))
            if cached_tools:
                ttl = self._reader.ttl(tool.cache_control, f"{path}.cache_control")
                self._mark(len(placed) + number, ttl, path)
            else:
                advice = "tools are part of the system message"
                self._reader.misplaced(tool.cache_control, f"{path}.cache_control", advice)
        for number, (block, ttl) in enumerate(placed):
            self._mark(end if number == len(placed) - 1 else number, ttl, block.path)

    def message(self, message: Message, path: str) -> None:
        content: Any = message.content
        if isinstance(content, str):
            if not content:
                raise InvalidRequest(
                    f"Invalid value for '{path}.content': it is empty.", param=f"{path}.content"
                )
            self._add(message.role, self._texts(content, f"{path}.content", message.role))
        elif message.role == "user":
            self._said(content, path)
        else:
            self._answered(content, path)

    def automatic(self, value: Any, profile: Profile) -> None:
        """`cache_control` at the top: a marker on the last block."""
        if value is None:
            return
        if profile.explicit is None or not profile.explicit.automatic_marker:
            advice = f"the profile {profile.name} has no automatic marker; mark a block"
            self._reader.misplaced(value, "cache_control", advice)
            return
        ttl = self._reader.ttl(value, "cache_control")
        last = sum(map(len, self.conversation.blocks)) - 1
        there = next((marker for marker in self.conversation.markers if marker.block == last), None)
        if there is None and ttl is not None:
            self.conversation.markers.append(Marker(last, ttl, "cache_control"))
        elif there is not None and there.ttl != ttl:
            raise InvalidRequest(
                f"cache_control at the top has ttl='{ttl}', but {there.path} on the last block has "
                f"ttl='{there.ttl}'; use one of them.",
                param="cache_control",
            )

    def _said(self, blocks: Sequence[Any], path: str) -> None:
        """Results of tools are messages of their own; the text between them is the user's."""
        texts: list[Placed] = []
        for number, block in enumerate(blocks):
            place = f"{path}.content[{number}]"
            match block:
                case TextBlock():
                    texts.append(self._text(block, place, "user"))
                case ToolResultBlock():
                    self._flush(texts)
                    self._result(block, place)
                case _:
                    raise _misplaced(block.type, "user", place)
        self._flush(texts)

    def _flush(self, texts: list[Placed]) -> None:
        if texts:
            self._add("user", list(texts))
            texts.clear()

    def _result(self, block: ToolResultBlock, path: str) -> None:
        if block.tool_use_id not in self._calls:
            raise InvalidRequest(
                f"Invalid value for '{path}.tool_use_id': no 'tool_use' block before it has this id.",
                param=f"{path}.tool_use_id",
            )
        placed = self._texts(block.content, f"{path}.content", "tool") or [
            (ContentBlock(path, "tool", ""), None)
        ]
        ttl = self._reader.ttl(block.cache_control, f"{path}.cache_control")
        if ttl is not None:
            placed[-1] = (placed[-1][0], ttl)
        self._add("tool", placed, tool_call_id=block.tool_use_id)

    def _answered(self, blocks: Sequence[Any], path: str) -> None:
        """Calls are rendered behind the text: as blocks, they end where the next message begins."""
        texts: list[Placed] = []
        calls: list[dict[str, Any]] = []
        behind: list[Placed] = []
        for number, block in enumerate(blocks):
            place = f"{path}.content[{number}]"
            match block:
                case TextBlock():
                    texts.append(self._text(block, place, "assistant"))
                case ToolUseBlock():
                    arguments = json.dumps(block.input, ensure_ascii=False)
                    function = {"name": block.name, "arguments": arguments}
                    calls.append({"id": block.id, "type": "function", "function": function})
                    self._calls.add(block.id)
                    ttl = self._reader.ttl(block.cache_control, f"{place}.cache_control")
                    behind.append((ContentBlock(place, "assistant", ""), ttl))
                case ThinkingBlock():
                    continue
                case _:
                    raise _misplaced(block.type, "assistant", place)
        if texts or calls:
            self._add("assistant", texts, **({"tool_calls": calls} if calls else {}))
        self._waiting += behind

    def _texts(self, content: Any, path: str, role: str) -> list[Placed]:
        """A string is one block."""
        if not content:
            return []
        if isinstance(content, str):
            return [(ContentBlock(path, role, content), None)]
        return [self._text(block, f"{path}[{number}]", role) for number, block in enumerate(content)]

    def _text(self, block: TextBlock, path: str, role: str) -> Placed:
        ttl = self._reader.ttl(block.cache_control, f"{path}.cache_control")
        return ContentBlock(path, role, block.text), ttl

    def _add(self, role: str, placed: Iterable[Placed], **more: Any) -> None:
        placed = list(placed)
        text = "".join(block.text for block, _ in placed)
        self.conversation.add({"role": role, "content": text} | more, [*self._waiting, *placed])
        self._waiting = []

    def _mark(self, number: int, ttl: str | None, path: str) -> None:
        if ttl is not None:
            self.conversation.markers.append(Marker(number, ttl, f"{path}.cache_control"))


def _misplaced(kind: str, role: str, path: str) -> InvalidRequest:
    return InvalidRequest(
        f"Invalid value for '{path}': messages of the {role} have no '{kind}' blocks.", param=path
    )
