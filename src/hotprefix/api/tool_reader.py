"""Tool calls in an answer's text → what a chat completion says of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

from hotprefix.prompt.tool_calls import Scanned, ToolCallScanner

_UNBOUNDED = 1 << 30


class ToolReader:
    """Separates calls from content. A call is shown once it is complete; `most` bounds their number."""

    def __init__(self, most: int = _UNBOUNDED) -> None:
        self._scanner = ToolCallScanner()
        self._most = most
        self._count = 0

    @classmethod
    def one_call(cls) -> ToolReader:
        """For `parallel_tool_calls` false: further calls are dropped."""
        return cls(most=1)

    @property
    def has_calls(self) -> bool:
        return self._count > 0

    def push(self, text: str) -> Iterable[dict[str, Any]]:
        return self._shown(self._scanner.push(text))

    def finish(self) -> Iterable[dict[str, Any]]:
        return self._shown(self._scanner.finish())

    def _shown(self, scanned: Scanned) -> Iterable[dict[str, Any]]:
        if scanned.content:
            yield {"content": scanned.content}
        for call in scanned.calls:
            if self._count < self._most:
                function = {"name": call.name, "arguments": call.arguments}
                identity = {"index": self._count, "id": f"call_{uuid.uuid4().hex[:24]}", "type": "function"}
                yield {"tool_calls": [identity | {"function": function}]}
                self._count += 1
