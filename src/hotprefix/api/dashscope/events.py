"""Server-sent events byte for byte as DashScope writes them: its 1.x client compares raw lines."""

from __future__ import annotations

from typing import Any

import orjson


class EventWriter:
    """Numbers the events of one stream from 1. There is no `[DONE]`: the stream just ends."""

    def __init__(self) -> None:
        self._number = 0

    def result(self, document: dict[str, Any]) -> bytes:
        """A part of the answer."""
        return self._event("result", 200, document)

    def error(self, status: int, document: dict[str, Any]) -> bytes:
        """The stream's last word: `status` is what the response would have had."""
        return self._event("error", status, document)

    def _event(self, kind: str, status: int, document: dict[str, Any]) -> bytes:
        # No space after the colons: the client looks for `event:error` as it stands.
        self._number += 1
        head = f"id:{self._number}\nevent:{kind}\n:HTTP_STATUS/{status}\ndata:"
        return head.encode() + orjson.dumps(document) + b"\n\n"
