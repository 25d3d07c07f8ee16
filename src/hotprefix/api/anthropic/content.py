"""An answer's content blocks, and the events that tell of them."""

from __future__ import annotations

from typing import Any

import orjson

Event = dict[str, Any]


class ContentWriter:
    """Takes what a `Reader` shows. Text and calls become blocks in the order in which they come; a
    stream's events and the blocks of a whole answer say the same."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self._open = False

    def push(self, part: dict[str, Any]) -> list[Event]:
        """Text (`content`) or complete calls (`tool_calls`)."""
        events: list[Event] = []
        if text := part.get("content"):
            events += self._text(text)
        for call in part.get("tool_calls", ()):
            events += self._call(call)
        return events

    def close(self) -> list[Event]:
        """End the block that is open, if one is."""
        if not self._open:
            return []
        self._open = False
        return [{"type": "content_block_stop", "index": len(self.blocks) - 1}]

    def _text(self, text: str) -> list[Event]:
        events: list[Event] = []
        if not self._open:
            events = self._start({"type": "text", "text": ""})
        self.blocks[-1]["text"] += text
        return [*events, self._delta({"type": "text_delta", "text": text})]

    def _call(self, call: dict[str, Any]) -> list[Event]:
        identity = f"toolu_{call['id'].removeprefix('call_')}"
        function = call["function"]
        block = {"type": "tool_use", "id": identity, "name": function["name"], "input": {}}
        arguments = {"type": "input_json_delta", "partial_json": function["arguments"]}
        events = [*self.close(), *self._start(block), self._delta(arguments)]
        # The model's own JSON goes on as it stands: a number too large for us is none of our business.
        self.blocks[-1]["input"] = orjson.Fragment(function["arguments"])
        return [*events, *self.close()]

    def _start(self, block: dict[str, Any]) -> list[Event]:
        self.blocks.append(block)
        self._open = True
        index = len(self.blocks) - 1
        return [{"type": "content_block_start", "index": index, "content_block": dict(block)}]

    def _delta(self, delta: dict[str, Any]) -> Event:
        return {"type": "content_block_delta", "index": len(self.blocks) - 1, "delta": delta}
