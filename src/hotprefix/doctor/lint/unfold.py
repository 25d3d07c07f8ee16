"""The body of a request, in any of the four dialects → blocks, tools, markers and settings.

Lenient: what has the wrong type is passed over, as this is no place to validate requests.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from hotprefix.doctor.dialect import Dialect
from hotprefix.doctor.lint.request import (
    Block,
    LintRequest,
    MarkerUse,
    Origin,
    Part,
    Source,
    ToolDefinition,
    Where,
)
from hotprefix.doctor.lint.suspect import Cause, Hole, Suspect, TracedText
from hotprefix.doctor.recorded import Recorded

MARKER = "cache_control"
_SYSTEM = ("system", "developer")
_PROMPT_FIELDS = ("messages", "tools", "model", "input", "system", "instructions", "parameters")
_OPAQUE = ("arguments", "properties", "input_schema")
_DEEPEST = 40


def unfold(recorded: Recorded, origin: Origin, source: Source, *, tools_first: bool) -> LintRequest:
    """`tools_first`: whether the model reads the tools before the system message or behind it."""
    builder = _Builder(recorded.body)
    match recorded.dialect:
        case Dialect.CHAT:
            settings, root = _chat(builder)
        case Dialect.RESPONSES:
            settings, root = _responses(builder)
        case Dialect.DASHSCOPE:
            settings, root = _dashscope(builder)
        case Dialect.ANTHROPIC:
            settings, root = _anthropic(builder)
    builder.stray_markers()
    blocks, newest = builder.ordered(tools_first=tools_first)
    return LintRequest(
        recorded,
        origin,
        source,
        blocks,
        tuple(builder.tools),
        tuple(builder.numbered(blocks)),
        settings,
        root,
        newest,
        is_partial=origin is not Origin.DATA,
        has_open_history=any(block.is_open and block.role == "" for block in blocks),
        open_tools=tuple(builder.open_tools),
    )


def _chat(builder: _Builder) -> tuple[Mapping[str, Any], str]:
    body = builder.body
    builder.messages(body.get("messages"), "messages")
    builder.add_tools(body.get("tools"), "tools")
    return _rest(body), ""


def _responses(builder: _Builder) -> tuple[Mapping[str, Any], str]:
    body = builder.body
    builder.system(body.get("instructions"), "instructions")
    builder.add_tools(body.get("tools"), "tools")
    given = body.get("input")
    if isinstance(given, str | Hole):
        builder.content("user", given, "input", 0)
    else:
        builder.messages(given, "input")
    return _rest(body), ""


def _dashscope(builder: _Builder) -> tuple[Mapping[str, Any], str]:
    body = builder.body
    given, parameters = body.get("input"), body.get("parameters")
    given = given if isinstance(given, Mapping) else {}
    parameters = parameters if isinstance(parameters, Mapping) else {}
    builder.messages(given.get("messages"), "input.messages")
    history = given.get("history")
    for number, turn in enumerate(history if isinstance(history, list) else ()):
        if isinstance(turn, Mapping):
            place = f"input.history[{number}]"
            builder.content("user", turn.get("user"), f"{place}.user", 2 * number)
            builder.content("assistant", turn.get("bot"), f"{place}.bot", 2 * number + 1)
    builder.content("user", given.get("prompt"), "input.prompt", 1_000_000)
    builder.add_tools(parameters.get("tools"), "parameters.tools")
    return {**_rest(body), **parameters}, "parameters."


def _anthropic(builder: _Builder) -> tuple[Mapping[str, Any], str]:
    body = builder.body
    builder.system(body.get("system"), "system")
    builder.add_tools(body.get("tools"), "tools")
    builder.messages(body.get("messages"), "messages")
    return _rest(body), ""


def _rest(body: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in body.items() if name not in _PROMPT_FIELDS}


class _Builder:
    """Collects blocks by part; markers name blocks by path until the order is known."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        self.body = body
        self.tools: list[ToolDefinition] = []
        self.open_tools: list[Any] = []
        self._blocks: dict[Part, list[Block]] = {part: [] for part in Part}
        self._markers: list[tuple[MarkerUse, str]] = []
        self._seen: set[str] = set()

    def system(self, value: Any, path: str) -> None:
        self.content("system", value, path, -1)

    def messages(self, value: Any, path: str) -> None:
        if isinstance(value, Hole):
            self._open(value, path, 0)
        for number, message in enumerate(value if isinstance(value, list) else ()):
            place = f"{path}[{number}]"
            if isinstance(message, Hole):
                self._open(message, place, number)
            elif isinstance(message, Mapping):
                self._message(message, place, number)

    def content(self, role: str, value: Any, path: str, message: int) -> None:
        """A string is one block, a list one for each element."""
        if isinstance(value, str | Hole):
            self._add(role, value, path, message)
        for number, part in enumerate(value if isinstance(value, list) else ()):
            place = f"{path}[{number}]"
            self._add(role, _text_of(part), place, message)
            if isinstance(part, Mapping):
                self._mark(part, place, Where.BLOCK, place)

    def add_tools(self, value: Any, path: str) -> None:
        if isinstance(value, Hole):
            self.open_tools += value.suspects
        for number, tool in enumerate(value if isinstance(value, list) else ()):
            if isinstance(tool, Hole):
                self.open_tools += tool.suspects
            if not isinstance(tool, Mapping):
                continue
            place = f"{path}[{number}]"
            self.tools.append(ToolDefinition(place, tool))
            plain = {key: item for key, item in tool.items() if key != MARKER}
            text = _traced_json(plain)
            block = Block(place, "system", text, Part.TOOLS, suspects=text.suspects)
            self._blocks[Part.TOOLS].append(block)
            self._mark(tool, place, Where.TOOL, place)

    def stray_markers(self) -> None:
        """Markers where no dialect has any."""
        if MARKER in self.body and MARKER not in self._seen:
            self._mark(self.body, "", Where.TOP, "")
        for path, holder in _holders(self.body, "", 0):
            if f"{path}.{MARKER}" not in self._seen and path:
                self._mark(holder, path, Where.OTHER, "")

    def ordered(self, *, tools_first: bool) -> tuple[tuple[Block, ...], int]:
        """All blocks, and the number of the first of the newest turn."""
        system, tools, history = (self._blocks[part] for part in Part)
        blocks = (*tools, *system, *history) if tools_first else (*system, *tools, *history)
        first = len(system) + len(tools)
        newest = len(blocks)
        last = next((b.message for b in reversed(history) if b.role != "assistant"), None)
        while newest > first and last is not None and blocks[newest - 1].message >= last:
            newest -= 1
        while newest > first and blocks[newest - 1].role == "tool" == blocks[newest].role:
            newest -= 1
        return blocks, newest

    def numbered(self, blocks: Sequence[Block]) -> Iterator[MarkerUse]:
        """The markers in the order of the prompt, with the numbers of their blocks."""
        numbers = {block.path: number for number, block in enumerate(blocks)}
        found = [
            MarkerUse(use.path, use.owner, use.value, use.where, numbers.get(marked) if marked else None)
            for use, marked in self._markers
        ]
        return iter(sorted(found, key=lambda use: len(blocks) if use.block is None else use.block))

    def _message(self, message: Mapping[str, Any], path: str, number: int) -> None:
        role = message.get("role")
        kind = message.get("type")
        if not isinstance(role, str):
            role = {"function_call": "assistant", "function_call_output": "tool"}.get(str(kind), "user")
        content = message.get("content", message.get("output"))
        where = f"{path}.{'content' if 'content' in message else 'output'}"
        if kind == "function_call":
            call = {"name": message.get("name"), "arguments": message.get("arguments")}
            self._add(role, _traced_json(call), path, number)
        else:
            self.content(role, content, where, number)
        calls = message.get("tool_calls")
        for index, call in enumerate(calls if isinstance(calls, list) else ()):
            self._add(role, _traced_json(_called(call)), f"{path}.tool_calls[{index}]", number)
        self._mark(message, path, Where.MESSAGE, where)

    def _add(self, role: str, value: Any, path: str, message: int) -> None:
        suspects = value.suspects if isinstance(value, TracedText | Hole) else ()
        text = "" if isinstance(value, Hole) else value
        is_open = isinstance(value, Hole) or any(s.cause in (Cause.VARIABLE, Cause.OPEN) for s in suspects)
        part = Part.SYSTEM if role in _SYSTEM and not self._blocks[Part.HISTORY] else Part.HISTORY
        self._blocks[part].append(Block(path, role, text, part, message, suspects, is_open))

    def _open(self, hole: Hole, path: str, number: int) -> None:
        self._blocks[Part.HISTORY].append(Block(path, "", "", Part.HISTORY, number, hole.suspects, True))

    def _mark(self, holder: Mapping[str, Any], path: str, where: Where, marked: str) -> None:
        if MARKER not in holder:
            return
        place = f"{path}.{MARKER}" if path else MARKER
        self._seen.add(place)
        self._markers.append((MarkerUse(place, path, holder[MARKER], where), marked))


def _text_of(part: Any) -> Any:
    """What a content element says; what is no text stands for itself."""
    if isinstance(part, str | Hole):
        return part
    if not isinstance(part, Mapping):
        return ""
    for name in ("text", "thinking"):
        if isinstance(part.get(name), str | Hole):
            return part[name]
    if part.get("type") == "tool_use":
        return _traced_json({"name": part.get("name"), "arguments": part.get("input")})
    if part.get("type") == "tool_result":
        return _result(part.get("content"))
    for name in ("image_url", "image", "source"):
        if name in part:
            return f"<image {_address(part[name])}>"
    return _traced_json({key: value for key, value in part.items() if key != MARKER})


def _result(content: Any) -> Any:
    if isinstance(content, list):
        return "\n".join(str(_text_of(part)) for part in content)
    return content if isinstance(content, str | Hole) else ""


def _address(image: Any) -> str:
    if isinstance(image, Mapping):
        return str(image.get("url") or image.get("data") or "")
    return str(image)


def _called(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return call
    return {"name": function.get("name"), "arguments": function.get("arguments")}


def _traced_json(value: Any) -> TracedText:
    """JSON as text, with what is suspected of any string in it."""
    text = _json(value)
    found = dict.fromkeys(_suspects_within(value, 0))
    return TracedText(text, (replace(suspect, start=0, end=len(text)) for suspect in found))


def _suspects_within(value: Any, depth: int) -> Iterator[Suspect]:
    if isinstance(value, TracedText | Hole):
        yield from value.suspects
    elif isinstance(value, Mapping | list) and depth < _DEEPEST:
        for item in value.values() if isinstance(value, Mapping) else value:
            yield from _suspects_within(item, depth + 1)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=repr)
    except (ValueError, RecursionError):
        return ""


def _holders(value: Any, path: str, depth: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Objects with a marker, but not within JSON that belongs to the user."""
    if depth > _DEEPEST:
        return
    if isinstance(value, Mapping):
        if MARKER in value:
            yield path, value
        for key, item in value.items():
            is_call = key == "input" and value.get("type") == "tool_use"
            if key not in _OPAQUE and key != MARKER and not is_call:
                yield from _holders(item, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _holders(item, f"{path}[{index}]", depth + 1)
