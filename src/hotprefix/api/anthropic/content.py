"""An answer's content blocks, and the events that tell of them."""

from __future__ import annotations

from typing import Any

import orjson
from pydantic_core import from_json

from hotprefix.api.tool_reader import is_whole

Event = dict[str, Any]


class ContentWriter:
    """Takes what a `Reader` shows. Text and calls become blocks in the order in which they come; a
    stream's events and the blocks of a whole answer say the same."""

    def __init__(self) -> None:
        self.blocks: list[dict[str, Any]] = []
        self._open = ""
        self._arguments = ""

    def push(self, part: dict[str, Any]) -> list[Event]:
        """Text (`content`), and the beginnings and further parts of calls (`tool_calls`)."""
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
        if self._open == "tool_use":
            self.blocks[-1]["input"] = _input(self._arguments)
        self._open = ""
        return [{"type": "content_block_stop", "index": len(self.blocks) - 1}]

    def _text(self, text: str) -> list[Event]:
        events: list[Event] = []
        if self._open != "text":
            events = [*self.close(), *self._start({"type": "text", "text": ""})]
        self.blocks[-1]["text"] += text
        return [*events, self._delta({"type": "text_delta", "text": text})]

    def _call(self, call: dict[str, Any]) -> list[Event]:
        events: list[Event] = []
        function = call["function"]
        if "id" in call:
            identity = f"toolu_{call['id'].removeprefix('call_')}"
            block = {"type": "tool_use", "id": identity, "name": function["name"], "input": {}}
            events = [*self.close(), *self._start(block)]
            self._arguments = ""
        self._arguments += function["arguments"]
        partial = {"type": "input_json_delta", "partial_json": function["arguments"]}
        return [*events, self._delta(partial)]

    def _start(self, block: dict[str, Any]) -> list[Event]:
        self.blocks.append(block)
        self._open = block["type"]
        index = len(self.blocks) - 1
        return [{"type": "content_block_start", "index": index, "content_block": dict(block)}]

    def _delta(self, delta: dict[str, Any]) -> Event:
        return {"type": "content_block_delta", "index": len(self.blocks) - 1, "delta": delta}


def _input(arguments: str) -> Any:
    """The model's own JSON as it stands: a number too large for us is none of our business. Of one
    that was cut short, what a client makes of the same stream; bad JSON goes under the name that
    Anthropic gives it."""
    if is_whole(arguments):
        return orjson.Fragment(arguments)
    try:
        return from_json(arguments, allow_partial=True, allow_inf_nan=False)
    except ValueError:
        return {"INVALID_JSON": arguments}
