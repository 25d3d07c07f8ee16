"""Reads tool calls back from a model's answer, all at once or as it streams."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from hotprefix.prompt.arguments import CLOSE, ArgumentsReader, head_of_call

OPEN = "<tool_call>"
_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function's name and its arguments as the JSON text that the model wrote."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Words:
    """Content to show."""

    text: str


@dataclass(frozen=True, slots=True)
class CallOpened:
    """A call of this function; its arguments follow."""

    name: str


@dataclass(frozen=True, slots=True)
class CallPart:
    """More of the arguments of the call that was opened last."""

    arguments: str


Found = Words | CallOpened | CallPart


def parse_tool_calls(text: str) -> tuple[str, list[ToolCall]]:
    """Content and calls of a whole answer; a block that is no call stays in the content."""
    scanner = ToolCallScanner()
    return folded([*scanner.push(text), *scanner.finish()])


def folded(found: Iterable[Found]) -> tuple[str, list[ToolCall]]:
    """All that was found put together: content and calls."""
    content: list[str] = []
    calls: list[ToolCall] = []
    for item in found:
        match item:
            case Words(text):
                content.append(text)
            case CallOpened(name):
                calls.append(ToolCall(name, ""))
            case CallPart(arguments):
                calls[-1] = ToolCall(calls[-1].name, calls[-1].arguments + arguments)
    return "".join(content), calls


class ToolCallScanner:
    """Separates calls from content in a stream, in their order.

    Reads `<tool_call>` blocks that hold one JSON object, several, or a list of them, and a last
    block that lacks its closing tag. An object that begins with the name and then opens its
    arguments is a call from there on: what the model writes as arguments is passed on at once, be
    it cut short or bad JSON in the end. All others have to be complete and valid; a block of none is
    content. White space around a call is dropped. However the text is cut into pushes, the sum is
    the same.
    """

    def __init__(self) -> None:
        self._buffer = ""
        self._tried = 0
        self._trims = False
        self._read = self._outside

    def push(self, text: str) -> list[Found]:
        """Take more text."""
        self._buffer += text
        return list(self._scan(final=False))

    def finish(self) -> list[Found]:
        """The answer is complete: what was held back is now certain."""
        return list(self._scan(final=True))

    def _scan(self, *, final: bool) -> Iterator[Found]:
        """Each state reads on and names the next one, until one needs more text."""
        while True:
            before = self._read, len(self._buffer)
            yield from self._read(final=final)
            if (self._read, len(self._buffer)) == before:
                return

    def _outside(self, *, final: bool) -> Iterator[Found]:
        """Content, up to a block that opens."""
        if self._trims:
            self._buffer = self._buffer.lstrip(_SPACE)
            self._trims = not self._buffer
        start = self._buffer.find(OPEN)
        if start < 0:
            held = 0 if final else _held_back(self._buffer)
            yield from self._words(len(self._buffer) - held)
            return
        # White space before a call goes with the call, if it is one.
        yield from self._words(len(self._buffer[:start].rstrip(_SPACE)))
        body = self._buffer.index(OPEN) + len(OPEN)
        if (head := head_of_call(self._buffer[body:])) is not None:
            yield from self._opened(head, body)
            return
        found = self._block(body, final=final)
        if found is None:
            return
        end, calls = found
        if calls is None:
            yield from self._words(end)
        else:
            self._take(end)
            yield from _complete(calls)
            self._trims = True

    def _opened(self, head: re.Match[str], body: int) -> Iterator[Found]:
        yield CallOpened(json.loads(head["name"], strict=False))
        self._take(body + head.end())
        self._arguments = ArgumentsReader()
        self._read = self._within_arguments

    def _within_arguments(self, *, final: bool) -> Iterator[Found]:
        taken = self._arguments.take(self._buffer, final=final)
        self._take(taken.used)
        if taken.shown:
            yield CallPart(taken.shown)
        if taken.breaks_off:
            self._ended()
        elif taken.has_ended:
            self._read = self._behind_arguments

    def _behind_arguments(self, *, final: bool) -> Iterator[Found]:
        """The rest of a block: the object's end, and maybe more objects. What is none is dropped."""
        rest = self._buffer.lstrip(_SPACE)
        if rest.startswith("}"):
            self._take(self._buffer.index("}") + 1)
            self._read = self._behind_call
        elif rest or final:
            self._read = self._dropping
        yield from ()

    def _behind_call(self, *, final: bool) -> Iterator[Found]:
        """Within a block, behind a call that is complete."""
        rest = self._buffer.lstrip(_SPACE)
        if not rest.startswith(("{", "[")):
            self._read = self._dropping if rest or final else self._behind_call
            return
        if (head := head_of_call(rest)) is not None:
            yield from self._opened(head, len(self._buffer) - len(rest))
            return
        found = self._block(0, final=final)
        if found is None:
            return
        end, calls = found
        if calls is None:
            self._read = self._dropping
            return
        self._take(end)
        self._ended()
        yield from _complete(calls)

    def _dropping(self, *, final: bool) -> Iterator[Found]:
        """What a block holds behind its calls is no content either."""
        close = self._buffer.find(CLOSE)
        if close >= 0:
            self._take(close + len(CLOSE))
            self._ended()
        else:
            self._take(len(self._buffer) - (0 if final else len(CLOSE) - 1))
        yield from ()

    def _ended(self) -> None:
        self._trims = True
        self._read = self._outside

    def _block(self, body: int, *, final: bool) -> tuple[int, list[ToolCall] | None] | None:
        """A block whose body begins at `body`: its end and calls, or the body's place if it is none.

        None while that is not certain.
        """
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

    def _words(self, count: int) -> Iterator[Found]:
        if count:
            yield Words(self._take(count))

    def _take(self, count: int) -> str:
        count = max(0, count)
        taken, self._buffer = self._buffer[:count], self._buffer[count:]
        self._tried = max(0, self._tried - count)
        return taken


def _complete(calls: Iterable[ToolCall]) -> Iterator[Found]:
    for call in calls:
        yield CallOpened(call.name)
        yield CallPart(call.arguments)


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
