"""The arguments of a tool call, passed on while the model writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass

CLOSE = "</tool_call>"

_SPACE = r"[ \t\r\n]*"
_ESCAPE = r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})'
_HEAD = re.compile(
    rf'{_SPACE}\{{{_SPACE}"name"{_SPACE}:{_SPACE}(?P<name>"(?:[^"\\]|{_ESCAPE}){{1,256}}"){_SPACE},'
    rf'{_SPACE}"(?:arguments|parameters)"{_SPACE}:{_SPACE}'
    rf'(?=\{{{_SPACE}(?:\}}|"(?:[^"\\]|{_ESCAPE}){{0,256}}"{_SPACE}:{_SPACE}["{{\[\-0-9tfn]))'
)
_OUTSIDE = re.compile(r'[^"{}\[\]<]+')
_INSIDE = re.compile(r'(?:[^"\\<\x00-\x1f]|\\[^\x00-\x1f])+')
_END_OF_ANSWER = re.compile(re.escape(CLOSE) + _SPACE + r"\Z")


def head_of_call(body: str) -> re.Match[str] | None:
    """Whether a block's body is the beginning of a call whose arguments can be passed on.

    It names a function and opens its arguments, at least up to the first value. The match ends
    where they begin; its group `name` is a JSON string.
    """
    return _HEAD.match(body)


@dataclass(frozen=True, slots=True)
class Taken:
    """What was taken of a text: `shown` is to be passed on, `used` characters are done with.

    If the arguments have ended, `breaks_off` tells that it was by the closing tag, which is used too.
    """

    shown: str
    used: int
    has_ended: bool
    breaks_off: bool = False


class ArgumentsReader:
    """Finds the end of a JSON object that begins with the first text given.

    It ends with its last brace, or is broken off by the closing tag. Control characters within
    strings, which models write and JSON forbids, are escaped; all else is passed on as it stands.
    """

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False

    def take(self, text: str, *, final: bool) -> Taken:
        """Read on. What may be the beginning of the closing tag is left unused; if nothing follows
        (`final`) it is no part of the arguments."""
        parts: list[str] = []
        at = 0
        while at < len(text):
            if self._is_tag(text, at):
                if text.startswith(CLOSE, at) and not self._in_string:
                    return Taken("".join(parts), at + len(CLOSE), True, True)
                break
            part = self._next(text, at, final=final)
            if not part:
                break
            at += len(part)
            parts.append(_escaped(part) if self._in_string else part)
            if not self._depth:
                return Taken("".join(parts), at, True)
        return Taken("".join(parts), at, final)

    def _is_tag(self, text: str, at: int) -> bool:
        """Whether the closing tag, or what may become one, stands here.

        Within a string it is only a tag if the answer ends there.
        """
        if text[at] != "<":
            return False
        if CLOSE.startswith(text[at:]):
            return True
        if self._in_string:
            return _END_OF_ANSWER.match(text, at) is not None
        return text.startswith(CLOSE, at)

    def _next(self, text: str, at: int, *, final: bool) -> str:
        """The next run of characters of one kind; empty if it needs more text."""
        run = (_INSIDE if self._in_string else _OUTSIDE).match(text, at)
        if run is not None:
            return run[0]
        character = text[at]
        if self._in_string:
            if character == "\\" and at + 1 == len(text) and not final:
                return ""
            self._in_string = character != '"'
        elif character == '"':
            self._in_string = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
        return character


def _escaped(part: str) -> str:
    return re.sub(r"[\x00-\x1f]", _escape, part)


def _escape(control: re.Match[str]) -> str:
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}
    return short.get(control[0]) or f"\\u{ord(control[0]):04x}"
