"""Reads tool calls back from a model's answer, all at once or as it streams."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

OPEN, CLOSE = "<tool_call>", "</tool_call>"
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function's name and its arguments as the JSON text that the model wrote."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Scanned:
    """What became certain: `content` to show and finished `calls`."""

    content: str = ""
    calls: tuple[ToolCall, ...] = ()


def parse_tool_calls(text: str) -> tuple[str, list[ToolCall]]:
    """Content and calls of a whole answer; a block that is no valid call stays in the content."""
    scanner = ToolCallScanner()
    steps = (scanner.push(text), scanner.finish())
    return "".join(step.content for step in steps), [call for step in steps for call in step.calls]


class ToolCallScanner:
    """Separates calls from content in a stream.

    Reads `<tool_call>` blocks that hold one JSON object, several, or a list of them, and a last
    block that lacks its closing tag. White space around a call is dropped. However the text is
    cut into pushes, the sum is the same.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._tried = 0
        self._trims = False

    def push(self, text: str) -> Scanned:
        """Take more text."""
        self._buffer += text
        return self._scan(final=False)

    def finish(self) -> Scanned:
        """The answer is complete: what was held back is now certain."""
        return self._scan(final=True)

    def _scan(self, *, final: bool) -> Scanned:
        content: list[str] = []
        calls: list[ToolCall] = []
        while True:
            self._trim_after_call()
            start = self._buffer.find(OPEN)
            if start < 0:
                held = 0 if final else _held_back(self._buffer)
                content.append(self._take(len(self._buffer) - held))
                break
            # White space before a call goes with the call, if it is one.
            content.append(self._take(len(self._buffer[:start].rstrip(_SPACE))))
            found = self._block(final=final)
            if found is None:
                break
            end, block = found
            taken = self._take(end)
            if block is None:
                content.append(taken)
            else:
                calls += block
                self._trims = True
        return Scanned("".join(content), tuple(calls))

    def _block(self, *, final: bool) -> tuple[int, list[ToolCall] | None] | None:
        """The first block: its end and calls, or the end of an opening tag that opens none.

        None while that is not certain.
        """
        body = self._buffer.index(OPEN) + len(OPEN)
        position = max(self._tried, body)
        while (close := self._buffer.find(CLOSE, position)) >= 0:
            inner = self._buffer[body:close]
            calls = _read_calls(inner)
            if calls is not None:
                return close + len(CLOSE), calls
            if not _ends_inside_string(inner):
                return body, None
            # The closing tag is part of a JSON string: look for the next one.
            position = close + len(CLOSE)
        if final:
            calls = _read_calls(self._buffer[body:])
            return (body, None) if calls is None else (len(self._buffer), calls)
        self._tried = max(position, len(self._buffer) - len(CLOSE) + 1)
        return None

    def _take(self, count: int) -> str:
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        self._tried = max(0, self._tried - count)
        return taken

    def _trim_after_call(self) -> None:
        if self._trims:
            self._buffer = self._buffer.lstrip(_SPACE)
            self._trims = not self._buffer


def _held_back(text: str) -> int:
    """Characters at the end that may be the white space and opening tag of a call."""
    part = next(n for n in range(min(len(OPEN) - 1, len(text)), -1, -1) if text.endswith(OPEN[:n]))
    return len(text) - len(text[: len(text) - part].rstrip(_SPACE))


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_refuse_constant)


def _ends_inside_string(body: str) -> bool:
    try:
        _DECODER.raw_decode(body.lstrip(_SPACE))
    except json.JSONDecodeError as error:
        return error.msg.startswith("Unterminated string")
    except (ValueError, RecursionError):
        return False
    return False


def _read_calls(body: str) -> list[ToolCall] | None:
    """Calls of a block's body; None if it is not objects (or lists of objects) that name a function."""
    calls: list[ToolCall] = []
    at = _skip_space(body, 0)
    if at == len(body):
        return None
    try:
        while at < len(body):
            found, at = _read_value(body, at)
            calls += found
            at = _skip_space(body, at)
    except (ValueError, RecursionError):
        return None
    return calls


def _read_value(text: str, at: int) -> tuple[list[ToolCall], int]:
    value, end = _DECODER.raw_decode(text, at)
    if isinstance(value, list):
        calls = [_call(item, text[first:last]) for item, first, last in _elements(text, at)]
        return calls, end
    return [_call(value, text[at:end])], end


def _elements(text: str, at: int) -> list[tuple[Any, int, int]]:
    """Values of the valid JSON list at `at`, with their places."""
    found = []
    at = _skip_space(text, at + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        found.append((value, at, end))
        at = _skip_space(text, end)
        at = _skip_space(text, at + 1) if text[at] == "," else at
    return found


def _call(value: Any, raw: str) -> ToolCall:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str) or not value["name"]:
        raise ValueError("not a call")
    key = "arguments" if "arguments" in value else "parameters"
    arguments = value.get(key, {})
    if isinstance(arguments, str):
        # Some models write the arguments as a string of JSON.
        if not isinstance(json.loads(arguments), dict):
            raise ValueError("arguments are not an object")
        return ToolCall(value["name"], arguments)
    if not isinstance(arguments, dict):
        raise ValueError("arguments are not an object")
    return ToolCall(value["name"], _raw_member(raw, key) if key in value else "{}")


def _raw_member(text: str, wanted: str) -> str:
    """The text of a member of the valid JSON object `text`, strictly valid itself."""
    raw, at = "{}", _skip_space(text, 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        start = _skip_space(text, _skip_space(text, at) + 1)
        value, at = _DECODER.raw_decode(text, start)
        if key == wanted:
            raw = text[start:at]
            if any(character < " " for character in raw):
                raw = _strict(raw, value)
        at = _skip_space(text, at)
        at = _skip_space(text, at + 1) if text[at] == "," else at
    return raw


def _strict(raw: str, value: Any) -> str:
    """`raw` if it is strict JSON, else written anew (models put line breaks into strings)."""
    try:
        json.loads(raw)
    except ValueError:
        return json.dumps(value, ensure_ascii=False)
    return raw


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
