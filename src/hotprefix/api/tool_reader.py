"""Tool calls in an answer's text → what a chat completion says of them."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable
from typing import Any

from hotprefix.prompt.tool_calls import CallOpened, CallPart, Found, ToolCallScanner, Words

_UNBOUNDED = 1 << 30


class ToolReader:
    """Separates calls from content; `most` bounds the number of calls.

    A call is shown in parts: first its name and id with empty `arguments`, then those as they come.
    """

    def __init__(self, most: int = _UNBOUNDED) -> None:
        self._scanner = ToolCallScanner()
        self._most = most
        self._opened = 0

    @classmethod
    def one_call(cls) -> ToolReader:
        """For `parallel_tool_calls` false: further calls are dropped."""
        return cls(most=1)

    @property
    def has_calls(self) -> bool:
        return min(self._opened, self._most) > 0

    def push(self, text: str) -> Iterable[dict[str, Any]]:
        return self._shown(self._scanner.push(text))

    def finish(self) -> Iterable[dict[str, Any]]:
        return self._shown(self._scanner.finish())

    def _shown(self, found: Iterable[Found]) -> Iterable[dict[str, Any]]:
        for item in found:
            match item:
                case Words(text):
                    yield {"content": text}
                case CallOpened(name):
                    self._opened += 1
                    if self._opened <= self._most:
                        yield {"tool_calls": [self._head(name)]}
                case CallPart(arguments) if self._opened <= self._most:
                    part = {"index": self._opened - 1, "function": {"arguments": arguments}}
                    yield {"tool_calls": [part]}

    def _head(self, name: str) -> dict[str, Any]:
        identity = f"call_{uuid.uuid4().hex[:24]}"
        function = {"name": name, "arguments": ""}
        return {"index": self._opened - 1, "id": identity, "type": "function", "function": function}


def is_whole(arguments: str) -> bool:
    """Whether a call's arguments are complete, valid JSON: models can break off or slip."""
    try:
        json.loads(arguments, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")
